#!/bin/sh
# What all strategies share. It stands behind the part of one strategy, which
# sets directory and published, and defines adopt, publish, retract and
# remove_temp_files.
# shellcheck disable=SC2154 # variables set in the part before
# shellcheck disable=SC2006 # bash 5.2 loses a signal that comes while it reads $(

: "${REQUIRED_MODULES:=nvidia nvidia_uvm}"
: "${REQUIRED_DEVICES:=}"        # names below DEV_ROOT: nvidiactl nvidia0
: "${EXPECTED_DRIVER_VERSION:=}" # a whole word: 570.133.20
: "${INTERVAL_SECONDS:=10}"
: "${STATE_DIR:=/tmp}"
: "${SYS_ROOT:=/sys}"
: "${PROC_ROOT:=/proc}"
: "${DEV_ROOT:=/dev}"
: "${RETRACT_ON_EXIT:=true}"

# Every container's shell is process 1: two pods at once need names of their own.
writer=`uname -n 2>/dev/null`.$$
reason=''
said=''
asleep=''

log() {
    printf '%s %s\n' "`date -u +%Y-%m-%dT%H:%M:%SZ`" "$1"
}

say() {
    [ "$1" = "$said" ] || log "$1"
    said=$1
}

refuse() {
    log "$1"
    exit 64
}

driver_is_live() {
    for module in $REQUIRED_MODULES; do
        state=`cat "$SYS_ROOT/module/$module/initstate" 2>/dev/null`
        [ "$state" = live ] && continue
        reason="module $module is ${state:-not loaded}"
        return 1
    done

    file=$PROC_ROOT/driver/nvidia/version
    version=`cat "$file" 2>/dev/null`
    if [ -z "$version" ]; then
        reason="$file is missing or empty"
        return 1
    fi
    if [ -n "$EXPECTED_DRIVER_VERSION" ]; then
        case " $version " in
            *[[:space:]]"$EXPECTED_DRIVER_VERSION"[[:space:]]*) ;;
            *)
                first=`head -n 1 "$file"`
                reason="the driver is not $EXPECTED_DRIVER_VERSION: $first"
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

take_back() {
    if error=`rm -f "$1" 2>&1`; then
        log "removed $1"
    else
        reason="$reason; cannot remove $1: $error"
        return 1
    fi
}

leave() {
    trap '' TERM INT
    [ -z "$asleep" ] || kill "${!:-}" 2>/dev/null
    rm -f "$STATE_DIR/ready"
    remove_temp_files
    reason=stopped
    [ "$RETRACT_ON_EXIT" = false ] || retract
    log "$reason"
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
mkdir -p "$directory" 2>/dev/null # a failure is told by publish
remove_temp_files                 # of a killed predecessor
adopt

while :; do
    if ! driver_is_live; then
        rm -f "$STATE_DIR/ready"
        retract
        say "not ready: $reason"
    elif ! publish; then
        rm -f "$STATE_DIR/ready"
        say "not ready: $reason"
    else
        printf '' >"$STATE_DIR/ready"
        say "ready: the driver is live and $published"
    fi
    printf '' >"$STATE_DIR/alive"
    # In the background, so that a signal is handled at once.
    asleep=yes
    sleep "$INTERVAL_SECONDS" &
    wait "$!"
    asleep=''
done
