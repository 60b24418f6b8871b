from xml.etree import ElementTree

from gpu_constructs.capacity.report.markup import add, element


def written(made):
    return ElementTree.tostring(made, encoding="unicode")


def test_an_underscore_in_the_name_of_an_attribute_is_a_hyphen_and_one_behind_it_goes():
    assert written(element("p", class_="a", aria_hidden="true")) == '<p class="a" aria-hidden="true" />'


def test_the_one_attribute_with_a_capital_keeps_it():
    assert written(element("svg", viewBox="0 0 1 1")) == '<svg viewBox="0 0 1 1" />'


def test_an_attribute_of_nothing_is_left_out_and_a_number_is_written():
    assert written(element("td", class_=None, colspan=2)) == '<td colspan="2" />'


def test_names_are_text_and_never_markup():
    made = element("p", "<b>&</b>", title='"><script>')
    assert written(made) == '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;&lt;/b&gt;</p>'
    assert ElementTree.fromstring(written(made)).text == "<b>&</b>"


def test_what_no_document_may_hold_is_replaced_in_texts_and_attributes():
    made = element("p", "a\x00b\u202ec", title="d\x1be")
    assert (made.text, made.get("title")) == ("a\ufffdb\ufffdc", "d\ufffde")
    ElementTree.fromstring(written(made))


def test_an_element_is_added_as_the_last_and_given_back():
    parent = element("ul")
    add(parent, "li", "first")
    last = add(parent, "li", "last")
    assert [one.text for one in parent] == ["first", "last"]
    assert parent[-1] is last
