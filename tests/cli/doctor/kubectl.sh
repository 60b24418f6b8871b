#!/bin/sh
# Stands in for kubectl: prints the file of a resource in $FAKE, and fails as the API server does without the file.
while [ "${1#--}" != "$1" ]; do shift; done
case "$1 $2" in
    "config current-context") echo home ;;
    "config view") printf https://10.0.0.1:6443 ;;
    "logs "*) cat "$FAKE/log" ;;
    *)
        [ "$1 $2" = "get configmap" ] && set -- get "configmap.$3"
        if [ -f "$FAKE/$2.denied" ] && [ "${*#*--all-namespaces}" != "$*" ]; then
            echo "Error from server (Forbidden): $2 is forbidden: User \"me\" cannot list resource \"$2\"" >&2
            exit 1
        fi
        if [ ! -f "$FAKE/$2.json" ]; then
            echo "error: the server doesn't have a resource type \"$2\"" >&2
            exit 1
        fi
        cat "$FAKE/$2.json" ;;
esac
