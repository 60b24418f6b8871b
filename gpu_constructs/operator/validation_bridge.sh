#!/bin/sh
# Keeps the GPU Operator's marker files in VALIDATIONS_DIR for as long as the
# NVIDIA driver of this node is live, and takes them back when it is not.
#
#   kubectl logs       the reason, once each time it changes
#   STATE_DIR/ready    all markers are in place (readiness)
#   STATE_DIR/alive    touched at the end of every turn (liveness)
#   STATE_DIR/*.written  what was written, to know it again
#
# Files of others are safe: only an empty driver-ready is replaced, and only
# what this script wrote itself, and nobody changed since, is removed.
# A variable that is unset or empty gets its default.
set -u
umask 022

: "${VALIDATIONS_DIR:=/run/nvidia/validations}"
: "${MARKERS:=driver-ready toolkit-ready}"
: "${REQUIRED_MODULES:=nvidia nvidia_uvm}"
: "${REQUIRED_DEVICES:=}"        # names below DEV_ROOT: nvidiactl nvidia0
: "${EXPECTED_DRIVER_VERSION:=}" # a whole word: 570.133.20
: "${INTERVAL_SECONDS:=10}"
: "${STATE_DIR:=/tmp}"
: "${SYS_ROOT:=/sys}"
: "${PROC_ROOT:=/proc}"
: "${DEV_ROOT:=/dev}"
: "${RETRACT_ON_EXIT:=true}"
# The content of driver-ready, which the operands source as shell variables.
: "${IS_HOST_DRIVER:=true}"
: "${NVIDIA_DRIVER_ROOT:=/}"
: "${DRIVER_ROOT_CTR_PATH:=/host}"
: "${NVIDIA_DEV_ROOT:=/}"
: "${DEV_ROOT_CTR_PATH:=/host}"

reason=''
said=''
asleep=''

log() {
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1"
}

say() {
    [ "$1" = "$said" ] || log "$1"
    said=$1
}

refuse() {
    log "$1"
    exit 64
}

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

driver_is_live() {
    for module in $REQUIRED_MODULES; do
        state=$(cat "$SYS_ROOT/module/$module/initstate" 2>/dev/null)
        [ "$state" = live ] && continue
        reason="module $module is ${state:-not loaded}"
        return 1
    done

    file=$PROC_ROOT/driver/nvidia/version
    version=$(cat "$file" 2>/dev/null)
    if [ -z "$version" ]; then
        reason="$file is missing or empty"
        return 1
    fi
    if [ -n "$EXPECTED_DRIVER_VERSION" ]; then
        case " $version " in
            *[[:space:]]"$EXPECTED_DRIVER_VERSION"[[:space:]]*) ;;
            *)
                reason="the driver is not $EXPECTED_DRIVER_VERSION: $(head -n 1 "$file")"
                return 1
                ;;
        esac
    fi

    for gpu in "$PROC_ROOT"/driver/nvidia/gpus/*/; do
        [ -d "$gpu" ] && break
        reason="no GPU is bound to the driver: $PROC_ROOT/driver/nvidia/gpus is empty"
        return 1
    done

    for device in $REQUIRED_DEVICES; do
        [ -c "$DEV_ROOT/${device#/dev/}" ] && continue
        reason="$DEV_ROOT/${device#/dev/} is not a character device"
        return 1
    done
}

# A reader sees a whole file or none: the content goes to a name that neither
# readers nor the validator's clean-up of *-ready look at, and is renamed.
write() {
    temp=$VALIDATIONS_DIR/.gpu-constructs.$1.$$
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
        # Sourcing an empty driver-ready would leave the device plugin with
        # driver paths that are not there.
        if [ "$marker" = driver-ready ]; then
            [ -s "$VALIDATIONS_DIR/$marker" ] && continue
        else
            [ -e "$VALIDATIONS_DIR/$marker" ] && continue
        fi
        if ! error=$(write "$marker" 2>&1); then
            reason="cannot write $VALIDATIONS_DIR/$marker: $error"
            return 1
        fi
        log "wrote $VALIDATIONS_DIR/$marker"
    done
}

retract() {
    for marker in $MARKERS; do
        is_ours "$marker" || continue
        rm -f "$VALIDATIONS_DIR/$marker" && log "removed $VALIDATIONS_DIR/$marker"
        rm -f "$STATE_DIR/$marker.written"
    done
}

remove_temp_files() {
    rm -f "$VALIDATIONS_DIR"/.gpu-constructs.*
}

leave() {
    trap '' TERM INT
    [ -z "$asleep" ] || kill "${!:-}" 2>/dev/null
    rm -f "$STATE_DIR/ready"
    remove_temp_files
    [ "$RETRACT_ON_EXIT" = false ] || retract
    log "stopped"
    exit 0
}

case $INTERVAL_SECONDS in
    *[!0-9.]* | *.*.*) refuse "INTERVAL_SECONDS must be a number of seconds; got '$INTERVAL_SECONDS'" ;;
    *[1-9]*) ;;
    *) refuse "INTERVAL_SECONDS must be above 0; got '$INTERVAL_SECONDS'" ;;
esac
case $RETRACT_ON_EXIT in
    true | false) ;;
    *) refuse "RETRACT_ON_EXIT must be one of 'true', 'false'; got '$RETRACT_ON_EXIT'" ;;
esac

trap leave TERM INT
mkdir -p "$STATE_DIR"
mkdir -p "$VALIDATIONS_DIR" 2>/dev/null # a failure is told by publish
remove_temp_files                        # of a killed predecessor

while :; do
    if ! driver_is_live; then
        rm -f "$STATE_DIR/ready"
        say "not ready: $reason"
        retract
    elif ! publish; then
        rm -f "$STATE_DIR/ready"
        say "not ready: $reason"
    else
        printf '' >"$STATE_DIR/ready"
        say "ready: the driver is live and the markers are in place"
    fi
    printf '' >"$STATE_DIR/alive"
    # In the background, so that a signal is handled at once.
    asleep=yes
    sleep "$INTERVAL_SECONDS" &
    wait "$!"
    asleep=''
done
