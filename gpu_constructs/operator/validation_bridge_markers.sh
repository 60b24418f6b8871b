#!/bin/sh
# Keeps the GPU Operator's marker files in VALIDATIONS_DIR for as long as the
# NVIDIA driver of this node is live, and takes them back when it is not.
#
#   kubectl logs         the reason, once each time it changes
#   STATE_DIR/ready      all markers are in place (readiness)
#   STATE_DIR/alive      touched at the end of every turn (liveness)
#   STATE_DIR/*.written  what was written, to know it again
#
# Files of others are safe: only an empty driver-ready is replaced, and only
# what this script wrote itself, and no one changed since, is removed. What an
# earlier run left behind, with STATE_DIR gone, is known by its content.
# A variable that is unset or empty gets its default.
# shellcheck disable=SC2006 # bash 5.2 loses a signal that comes while it reads $(
# shellcheck disable=SC2034 # variables set here and read in the part that all strategies share
set -u
umask 022

: "${VALIDATIONS_DIR:=/run/nvidia/validations}"
: "${MARKERS:=driver-ready toolkit-ready}"
# The content of driver-ready, which the operands source as shell variables.
: "${IS_HOST_DRIVER:=true}"
: "${NVIDIA_DRIVER_ROOT:=/}"
: "${DRIVER_ROOT_CTR_PATH:=/host}"
: "${NVIDIA_DEV_ROOT:=/}"
: "${DEV_ROOT_CTR_PATH:=/host}"

directory=$VALIDATIONS_DIR
published='the markers are in place'

content() {
    case $1 in
        driver-ready)
            cat <<EOF
IS_HOST_DRIVER=$IS_HOST_DRIVER
NVIDIA_DRIVER_ROOT=$NVIDIA_DRIVER_ROOT
DRIVER_ROOT_CTR_PATH=$DRIVER_ROOT_CTR_PATH
NVIDIA_DEV_ROOT=$NVIDIA_DEV_ROOT
DEV_ROOT_CTR_PATH=$DEV_ROOT_CTR_PATH
EOF
            ;;
        *)
            # Readers test only that the file exists. The validator's own one
            # is empty, so this line tells the two apart.
            cat <<EOF
# written by the validation bridge
EOF
            ;;
    esac
}

is_ours() {
    [ -f "$STATE_DIR/$1.written" ] && cmp -s "$STATE_DIR/$1.written" "$VALIDATIONS_DIR/$1"
}

# A reader sees a whole file or none: the content goes to a name that neither
# readers nor the validator's clean-up of *-ready look at, and is renamed.
write() {
    temp=$VALIDATIONS_DIR/.gpu-constructs.$1.$writer
    mkdir -p "$VALIDATIONS_DIR" &&
        content "$1" >"$temp" &&
        chmod 0644 "$temp" &&
        cp "$temp" "$STATE_DIR/$1.written" &&
        mv -f "$temp" "$VALIDATIONS_DIR/$1" &&
        return
    rm -f "$temp" "$STATE_DIR/$1.written"
    return 1
}

publish() {
    for marker in $MARKERS; do
        file=$VALIDATIONS_DIR/$marker
        # No reader takes it for the marker, and a file cannot take its place.
        if [ -e "$file" ] && [ ! -f "$file" ]; then
            reason="$file is not a file"
            return 1
        fi
        # Sourcing an empty driver-ready would leave the device plugin with
        # driver paths that are not there.
        if [ "$marker" = driver-ready ]; then
            [ -s "$file" ] && continue
        else
            [ -e "$file" ] && continue
        fi
        if ! error=`write "$marker" 2>&1`; then
            reason="cannot write $file: $error"
            return 1
        fi
        log "wrote $file"
    done
}

retract() {
    for marker in $MARKERS; do
        is_ours "$marker" || continue
        take_back "$VALIDATIONS_DIR/$marker" && rm -f "$STATE_DIR/$marker.written"
    done
}

adopt() {
    for marker in $MARKERS; do
        [ -e "$STATE_DIR/$marker.written" ] && continue
        content "$marker" >"$STATE_DIR/$marker.written" 2>/dev/null && is_ours "$marker" && continue
        rm -f "$STATE_DIR/$marker.written"
    done
}

remove_temp_files() {
    rm -f "$VALIDATIONS_DIR"/.gpu-constructs.*
}
