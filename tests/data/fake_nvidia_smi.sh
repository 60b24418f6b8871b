#!/bin/sh
# Knows the calls the script may make and nothing else. A file beside it changes its mind:
# broken (no driver), lost (rows come, but rc 15), noperm, ignore (yes to -pl, nothing done), nopersistence,
# grumble (a warning among the rows), unsupported (rc 3), shrug (says so, and rc 0), dead (NVML broke),
# hang (no answer), inforom (all is done, but rc 14), quantize (a limit is held a little below what was asked for).
cd "${0%/*}/gpus" || exit 70
echo "$*" >>../calls
cat >/dev/null # takes what the script should not have offered

unknown_call() {
    echo "$*" >>../unknown-calls
    echo "Invalid combination of input arguments."
    exit 2
}

[ ! -e ../hang ] || exec sleep 60
if [ -e ../dead ]; then
    echo "Failed to initialize NVML: Unknown Error"
    exit 255
fi
finish() {
    if [ -e ../inforom ]; then
        echo "WARNING: infoROM is corrupted at gpu 0000:09:00.0"
        exit 14
    fi
    if [ -e ../lost ]; then
        echo "Unable to determine the device handle for GPU0000:09:00.0: GPU is lost."
        exit 15
    fi
}
if [ -e ../broken ]; then
    echo "NVIDIA-SMI has failed because it couldn't communicate with the \"NVIDIA driver\"."
    exit 9
fi
case $1 in
    -L)
        [ $# -eq 1 ] || unknown_call "$@"
        for gpu in *; do
            . "./$gpu"
            echo "GPU $index: $name (UUID: $uuid)"
        done
        finish
        ;;
    -pm)
        [ "$*" = "-pm 1" ] || unknown_call "$@"
        [ ! -e ../nopersistence ] || exit 3
        ;;
    --query-gpu=*)
        [ "$2" = --format=csv,noheader,nounits ] && [ $# -eq 2 ] || unknown_call "$@"
        for gpu in *; do
            . "./$gpu"
            row= IFS=,
            for field in ${1#--query-gpu=}; do
                case $field in
                    index) value=$index ;;
                    uuid) value=$uuid ;;
                    pci.bus_id) value=$pci ;;
                    name) value=$name ;;
                    power.limit) value=$limit ;;
                    power.min_limit) value=$min ;;
                    power.max_limit) value=$max ;;
                    power.default_limit) value=$default ;;
                    enforced.power.limit) value=$limit ;;
                    power.draw) value=101.52 ;;
                    utilization.gpu) value=87 ;;
                    utilization.memory) value=42 ;;
                    memory.used) value=20011 ;;
                    temperature.gpu) value=66 ;;
                    *) unknown_call "$@" ;;
                esac
                row="$row${row:+, }$value"
            done
            printf '%s\n' "$row" # as it is: echo of some shells reads backslashes
        done
        [ ! -e ../grumble ] || echo "WARNING: the \"infoROM\" is corrupted" >&2
        finish
        ;;
    -i)
        [ "$3" = -pl ] && [ $# -eq 4 ] || unknown_call "$@"
        case $4 in
            '' | *[!0-9]*) unknown_call "$@" ;;
        esac
        [ -e "$2" ] || exit 6
        . "./$2"
        if [ -e ../noperm ] || [ -e "../noperm-$2" ]; then
            echo "The current user does not have permission to change power limit."
            exit 4
        fi
        [ "$limit" != '[N/A]' ] || exit 3
        if [ -e ../shrug ]; then
            echo "Changing power management limit is Not Supported for GPU $index."
            echo "Treating as warning and moving on."
            exit 0
        fi
        if [ -e ../unsupported ]; then
            echo "Not this one."
            exit 3
        fi
        [ ! -e ../ignore ] || echo "Power limit was set, \"honestly\"."
        if [ $(($4 * 100)) -lt "${min%.*}${min#*.}" ] || [ "$4" -gt "${max%.*}" ]; then
            echo "Power limit $4.00 W is not valid, it should be between $min W and $max W"
            exit 2
        fi
        held=$4.00
        [ ! -e ../quantize ] || held=$(($4 - 1)).98
        [ -e ../ignore ] || sed -i "s/^limit=.*/limit=$held/" "$2"
        [ ! -e ../inforom ] || finish
        ;;
    *) unknown_call "$@" ;;
esac
