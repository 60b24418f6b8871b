#!/bin/sh
# Sets the power limit of every GPU of this node, reads it back, and looks
# again each INTERVAL_SECONDS: a limit is lost by a driver reload or GPU reset.
#
#   kubectl logs           logfmt, a usage line and a verdict for each GPU
#   STATE_DIR/ready        the last pass left every GPU as wanted (readiness)
#   STATE_DIR/heartbeat    when the last pass ended, in epoch seconds (liveness)
#
# Exit codes: 0 stopped, or ONESHOT and all as wanted; 1 ONESHOT and not so;
# 64 configuration that cannot be read; 69 nvidia-smi shows no GPU, or does not
# answer, for START_TIMEOUT_SECONDS: a new container gets new devices and libraries.
# A variable that is unset or empty gets its default.
# shellcheck disable=SC2006 # bash 5.2 loses a signal that comes while it reads $(
set -u
umask 022
export LC_ALL=C

# A wish is whole watts (300), a share of the GPU's default limit (80%) or the
# word default. An empty POWER_LIMIT leaves GPUs without a rule alone.
: "${POWER_LIMIT:=}"
# One rule a line; uuid wins over pci over index over name, then the first line.
#   uuid:GPU-5e0c...=280   pci:0000:01:00.0=280   index:0=280   name:*RTX 3090=280
: "${POWER_LIMITS:=}"
: "${OUT_OF_RANGE:=clamp}" # or refuse: what the GPU's own minimum and maximum do to a wish
: "${INTERVAL_SECONDS:=1800}"
: "${RETRY_SECONDS:=15}" # instead of INTERVAL_SECONDS after a pass that failed
: "${START_TIMEOUT_SECONDS:=300}"
: "${COMMAND_TIMEOUT_SECONDS:=20}" # for each call of nvidia-smi
: "${PERSISTENCE_MODE:=1}"
: "${RESTORE_ON_EXIT:=0}"
: "${ONESHOT:=0}"
: "${STATE_DIR:=/tmp}"
: "${METRICS_FILE:=}" # node_exporter textfile; its directory must exist
: "${NVIDIA_SMI:=nvidia-smi}"

FIELDS=index,uuid,pci.bus_id,name
FIELDS=$FIELDS,power.limit,power.min_limit,power.max_limit,power.default_limit,enforced.power.limit,power.draw
FIELDS=$FIELDS,utilization.gpu,utilization.memory,memory.used,temperature.gpu

# Between the fields of a row: a board's name may hold any other character.
separator=`printf '\037'`

corrupted="the infoROM of a GPU is corrupted, which does not keep its limit from being set"

asleep=''
has_begun='' # whether a limit may have been set

log() { # level, rest of the line
    printf 'ts=%s level=%s %s\n' "`date -u +%Y-%m-%dT%H:%M:%SZ`" "$1" "$2"
}

plain() { # any text without what ends a quoted word of logfmt
    printf '%s' "$1" | tr '\n\r\t\037"\134' "    '/"
}

quote() { # any text -> $quoted, fit for a line of logfmt
    quoted=\"`plain "$1"`\"
}

lower() {
    printf '%s' "$1" | tr '[:upper:]' '[:lower:]'
}

label_value() { # any text as METRICS_FILE has it between quotes
    printf '%s' "$1" | sed 's/["\\]/\\&/g'
}

smi() { # a call of nvidia-smi that ends, with rc 124, 137 or 143 if it had to be ended
    timeout -k 2 "$COMMAND_TIMEOUT_SECONDS" "$NVIDIA_SMI" "$@" 2>&1 </dev/null
}

has_hung() { # rc of smi
    case $1 in
        124 | 137 | 143) hung=yes ;;
        *) return 1 ;;
    esac
}

refuse() {
    quote "$1"
    log error "msg=$quoted"
    exit 64
}

# --- configuration ----------------------------------------------------------

is_wish() {
    case $1 in
        default) return 0 ;;
    esac
    case ${1%\%} in
        '' | 0* | *[!0-9]* | ?????*) return 1 ;;
    esac
}

check_rule() {
    is_wish "${1##*=}" || refuse "POWER_LIMITS: '$1' must end in '=' and watts, NN% or default"
    target=${1%=*}
    case $target in
        uuid:GPU-?* | name:?*) return ;;
        index:0 | index:[1-9]*) value=${target#index:} allowed=0-9 ;;
        pci:?*:?*.[0-7]) value=${target#pci:} allowed=0-9A-Fa-f:. ;;
        *) value='' allowed='' ;;
    esac
    case $value in
        '' | *[!$allowed]*)
            refuse "POWER_LIMITS: '$1' must start with uuid:GPU-..., pci:<bus id>, index:<number> or name:<glob>"
            ;;
    esac
}

check_seconds() { # variable, value, least
    case $2 in
        *[!0-9]* | 0?* | ???????????????????*) ;;
        *) [ "$2" -ge "$3" ] && return ;;
    esac
    refuse "$1 must be a whole number of seconds, $3 or more; got '$2'"
}

check_choice() { # variable, value, the two choices
    [ "$2" = "$3" ] || [ "$2" = "$4" ] || refuse "$1 must be one of '$3', '$4'; got '$2'"
}

check_configuration() {
    [ -z "$POWER_LIMIT" ] || is_wish "$POWER_LIMIT" ||
        refuse "POWER_LIMIT must be whole watts, NN%, default or empty; got '$POWER_LIMIT'"
    while read -r rule; do
        [ -z "$rule" ] || check_rule "$rule"
    done <<EOF
$POWER_LIMITS
EOF
    check_choice OUT_OF_RANGE "$OUT_OF_RANGE" clamp refuse
    check_choice PERSISTENCE_MODE "$PERSISTENCE_MODE" 0 1
    check_choice RESTORE_ON_EXIT "$RESTORE_ON_EXIT" 0 1
    check_choice ONESHOT "$ONESHOT" 0 1
    check_seconds INTERVAL_SECONDS "$INTERVAL_SECONDS" 1
    check_seconds RETRY_SECONDS "$RETRY_SECONDS" 1
    check_seconds START_TIMEOUT_SECONDS "$START_TIMEOUT_SECONDS" 0
    check_seconds COMMAND_TIMEOUT_SECONDS "$COMMAND_TIMEOUT_SECONDS" 1
    [ "$RETRY_SECONDS" -le "$INTERVAL_SECONDS" ] || RETRY_SECONDS=$INTERVAL_SECONDS
}

# --- values -----------------------------------------------------------------

# Shells have no fractions: limits are compared in hundredths of a watt.
hundredths() { # 300.5 -> $hundredths=30050; fails for [N/A] and its like
    hundredths=0
    whole=${1%%.*} fraction=00
    case $1 in
        *.*) fraction=${1#*.}00 ;;
    esac
    fraction=${fraction%"${fraction#??}"}
    case $whole$fraction in
        *[!0-9]* | ?????????*) return 1 ;;
    esac
    [ -n "$whole" ] || return 1
    # The leading 1 keeps 08 from being read as octal.
    hundredths=$((whole * 100 + 1$fraction - 100))
}

is_about() { # hundredths, watts: a board may hold 299.98 for 300
    [ $(($1 - $2 * 100)) -lt 100 ] && [ $(($2 * 100 - $1)) -lt 100 ]
}

bus() { # 00000000:0A:00.0, 0000:0a:00.0 and 0a:00.0 are one device
    echo "$1" | sed -e y/ABCDEF/abcdef/ -e 's/^0*\([^:]*:[^:]*:\)/\1/' -e t -e 's/^/:/'
}

wish_for() { # index, uuid, pci bus id, name -> $wish and the $rule it is from
    wish=$POWER_LIMIT rule=POWER_LIMIT best=0
    while read -r line; do
        target=${line%=*} rank=0
        pattern=${target#*:}
        case $target in
            uuid:*)
                pattern=`lower "$pattern"`
                found=`lower "$2"`
                [ "$pattern" = "$found" ] && rank=4
                ;;
            pci:*)
                pattern=`bus "$pattern"`
                found=`bus "$3"`
                [ "$pattern" = "$found" ] && rank=3
                ;;
            index:*) [ "$pattern" = "$1" ] && rank=2 ;;
            name:*)
                # shellcheck disable=SC2254 # the pattern is meant to be a glob
                case $4 in
                    $pattern) rank=1 ;;
                esac
                ;;
        esac
        [ "$rank" -gt "$best" ] && best=$rank wish=${line##*=} rule=$target
    done <<EOF
$POWER_LIMITS
EOF
}

# --- one pass ---------------------------------------------------------------

query() { # a line for each GPU, FIELDS apart by $separator, [Not Supported] as [Not_Supported]
    answer=`smi --query-gpu="$FIELDS" --format=csv,noheader,nounits`
    rc=$?
    # Of a row, three fields are before the name and ten behind it; what has fewer commas is a warning.
    printf '%s\n' "$answer" | sed -e '/\(,[^,]*\)\{13\}/!b' \
        -e "s/, */$separator/;s/, */$separator/;s/, */$separator/" \
        -e "s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/" \
        -e "s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/" \
        -e "s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/" \
        -e "s/, *\([^,]*\)\$/$separator\1/" \
        -e :a -e "s/\($separator\[[^]$separator]*\) /\1_/" -e ta
    return "$rc"
}

record() { # a GPU's lines for METRICS_FILE; watts wanted, or empty
    hundredths "$limit" || return
    model=`label_value "$name"`
    labels="{UUID=\"$uuid\",gpu=\"$index\",modelName=\"$model\"}"
    limit_lines="$limit_lines
gpu_power_limit_watts$labels $limit"
    [ -z "$1" ] || desired_lines="$desired_lines
gpu_power_limit_desired_watts$labels $1"
    checked=`date +%s`
    checked_lines="$checked_lines
gpu_power_limit_last_check_timestamp_seconds$labels $checked"
}

write_metrics() {
    text="# HELP gpu_power_limit_watts Power limit the driver holds.
# TYPE gpu_power_limit_watts gauge$limit_lines
# HELP gpu_power_limit_desired_watts Power limit this agent wants, within what the GPU allows.
# TYPE gpu_power_limit_desired_watts gauge$desired_lines
# HELP gpu_power_limit_last_check_timestamp_seconds When this agent last looked.
# TYPE gpu_power_limit_last_check_timestamp_seconds gauge$checked_lines"
    # node_exporter reads *.prom: the unfinished file is not one.
    temp=$METRICS_FILE.$$
    error=`{ printf '%s\n' "$text" >"$temp" && mv -f "$temp" "$METRICS_FILE"; } 2>&1` && return
    rm -f "$temp"
    quote "$error"
    log warn "msg=\"cannot write METRICS_FILE\" file=\"$METRICS_FILE\" output=$quoted"
}

limit_gpu() { # works on the row that limit_all has read
    where="gpu=$index uuid=$uuid"
    wish_for "$index" "$uuid" "$pci" "$name"
    if [ -z "$wish" ]; then
        record ''
        log info "$where msg=\"left alone\""
        return 0
    fi

    needed=$limit,$min,$max base=0
    case $wish in
        default | *%) needed=$needed,$default ;;
    esac
    case $needed in
        *N/A* | *Not_Supported*)
            log warn "$where msg=\"not supported\" limit=$limit min=$min max=$max default=$default"
            return 0
            ;;
    esac
    readable=no
    if hundredths "$limit" && now=$hundredths &&
        hundredths "$min" && least=$(((hundredths + 99) / 100)) &&
        hundredths "$max" && most=$((hundredths / 100)); then
        readable=yes
        case $wish in
            default | *%) hundredths "$default" && base=$hundredths || readable=no ;;
        esac
    fi
    if [ "$readable" = no ]; then
        log error "$where msg=\"cannot read the limits\" limit=$limit min=$min max=$max default=$default"
        return 1
    fi

    case $wish in
        default) watts=$((base / 100)) ;;
        *%) watts=$((base * ${wish%\%} / 10000)) ;;
        *) watts=$wish ;;
    esac
    quote "$rule"
    from="wish=$wish rule=$quoted"
    if [ "$least" -gt "$most" ] && [ "$OUT_OF_RANGE" = clamp ]; then # no whole watt between them
        record "$limit"
        log warn "$where msg=\"fixed limit\" $from asked=$watts limit=$limit min=$min max=$max"
        return 0
    fi
    if [ "$watts" -lt "$least" ] || [ "$watts" -gt "$most" ]; then
        if [ "$OUT_OF_RANGE" = refuse ]; then
            record ''
            log error "$where msg=\"out of range, refused\" $from watts=$watts min=$min max=$max"
            return 1
        fi
        asked=$watts
        [ "$watts" -lt "$least" ] && watts=$least
        [ "$watts" -gt "$most" ] && watts=$most
        log warn "$where msg=\"clamped\" $from asked=$asked watts=$watts min=$min max=$max"
    fi

    if is_about "$now" "$watts"; then
        record "$watts"
        log info "$where msg=\"ok\" watts=$watts $from"
        return 0
    fi
    before=$limit
    set_limit "$watts"
    case $? in
        0) ;;
        2)
            record ''
            return 0
            ;;
        *)
            record "$watts"
            return 1
            ;;
    esac
    # nvidia-smi may say yes and change nothing: believe the value alone.
    limit=`query | grep -F "$separator$uuid$separator" | cut -d "$separator" -f 5`
    record "$watts"
    if ! hundredths "$limit" || ! is_about "$hundredths" "$watts"; then
        quote "$answer"
        log error "$where msg=\"accepted but not applied\" watts=$watts limit=$limit output=$quoted"
        return 1
    fi
    log info "$where msg=\"set\" watts=$watts before=$before $from"
}

set_limit() { # watts; 2 where the GPU takes none, which nvidia-smi may call a success
    answer=`smi -i "$uuid" -pl "$1"`
    rc=$?
    unsupported=no
    quote "$answer"
    case $rc,`lower "$answer"` in
        3,* | *"not supported"*) unsupported=yes ;;
        0,*) return 0 ;;
        14,*)
            log warn "gpu=$index uuid=$uuid msg=\"set with rc=14\" watts=$1 output=$quoted hint=\"$corrupted\""
            return 0
            ;;
    esac
    has_hung "$rc" && answer="no answer for $COMMAND_TIMEOUT_SECONDS s" && quote "$answer"
    if [ "$unsupported" = yes ]; then
        said="not supported"
        [ "$rc" -eq 0 ] || said="not supported, set failed rc=$rc"
        hint="this GPU has no adjustable power limit"
        log warn "gpu=$index uuid=$uuid msg=\"$said\" watts=$1 output=$quoted hint=\"$hint\""
        return 2
    fi
    hint=''
    case $rc in
        4) hint="needs CAP_SYS_ADMIN: uid 0, capability SYS_ADMIN added, hostUsers not false" ;;
        8) hint="check the GPU's external power cables" ;;
        15) hint="the GPU has fallen off the bus: reset it or reboot the node" ;;
    esac
    log error "gpu=$index uuid=$uuid msg=\"set failed rc=$rc\" watts=$1 output=$quoted hint=\"$hint\""
    return 1
}

limit_all() {
    failed=0 seen=0 hung='' limit_lines='' desired_lines='' checked_lines='' has_begun=yes
    if [ "$PERSISTENCE_MODE" = 1 ]; then
        answer=`smi -pm 1`
        rc=$?
        has_hung "$rc" && answer="no answer for $COMMAND_TIMEOUT_SECONDS s"
        quote "$answer"
        [ "$rc" -eq 0 ] || log warn "msg=\"persistence mode failed rc=$rc\" output=$quoted"
    fi
    table='' query_rc=0
    if [ -z "$hung" ]; then
        table=`query`
        query_rc=$?
    fi
    has_hung "$query_rc" && table="no answer for $COMMAND_TIMEOUT_SECONDS s"
    quote "$table"
    case $query_rc in
        0) ;;
        14) log warn "msg=\"query ended with rc=14\" output=$quoted hint=\"$corrupted\"" ;;
        *)
            # Rows that came nevertheless are still worked on.
            failed=1
            log error "msg=\"query failed rc=$query_rc\" output=$quoted"
            ;;
    esac
    while IFS=$separator read -r index uuid pci name limit min max default enforced draw util memutil memory temperature; do
        if [ -z "$temperature" ]; then # no row: a warning of nvidia-smi
            quote "$index"
            [ -z "$index" ] || [ "$query_rc" -ne 0 ] || log warn "msg=\"nvidia-smi says\" output=$quoted"
            continue
        fi
        seen=$((seen + 1))
        quote "$name"
        [ -z "$hung" ] || continue
        log info "gpu=$index uuid=$uuid name=$quoted draw=$draw limit=$limit enforced=$enforced util=$util memutil=$memutil fb=$memory temp=$temperature"
        limit_gpu || failed=1
    done <<EOF
$table
EOF
    [ -z "$hung" ] || failed=1
    if [ "$seen" -eq 0 ]; then
        failed=1
        log error "msg=\"nvidia-smi shows no GPU\""
    fi
    [ -z "$METRICS_FILE" ] || [ -z "$checked_lines" ] || write_metrics
    return "$failed"
}

# --- start, loop, end -------------------------------------------------------

keep() { # file in STATE_DIR, what is in it
    error=`{ printf '%s' "$2" >"$STATE_DIR/.$1" && mv -f "$STATE_DIR/.$1" "$STATE_DIR/$1"; } 2>&1` && return
    quote "$error"
    log error "msg=\"cannot write STATE_DIR\" file=$1 output=$quoted"
}

forget() { # files in STATE_DIR
    for file; do
        error=`rm -f "$STATE_DIR/$file" 2>&1` && continue
        quote "$error"
        log error "msg=\"cannot write STATE_DIR\" file=$file output=$quoted"
    done
}

beat() {
    beaten=`date +%s`
    keep heartbeat "$beaten"
}

pause() { # in the background, so that a signal is handled at once
    asleep=yes
    sleep "$1" &
    wait "$!"
    asleep=''
}

restore() {
    table=`query`
    while IFS=$separator read -r index uuid pci name limit min max default rest; do
        [ -n "$rest" ] || continue
        wish_for "$index" "$uuid" "$pci" "$name"
        if [ -n "$wish" ] && [ "$limit" != "$default" ] && hundredths "$default"; then
            watts=$((hundredths / 100))
            set_limit "$watts" && log info "gpu=$index uuid=$uuid msg=\"default restored\" watts=$watts before=$limit"
        fi
    done <<EOF
$table
EOF
}

leave() {
    trap '' TERM INT
    [ -z "$asleep" ] || kill "${!:-}" 2>/dev/null
    forget ready
    [ "$RESTORE_ON_EXIT" = 0 ] || [ -z "$has_begun" ] || restore
    log info "msg=\"stopped\""
    exit 0
}

wait_for_nvidia_smi() {
    started=`date +%s`
    while :; do
        answer=`smi -L`
        rc=$?
        quote "$answer"
        [ "$rc" -ne 0 ] || return 0
        # One lost GPU, or a corrupted infoROM, ends it with an error too; the rows count.
        if printf '%s\n' "$answer" | grep -q '^GPU [0-9]*: '; then
            log warn "msg=\"nvidia-smi -L ended with rc=$rc\" output=$quoted"
            return 0
        fi
        has_hung "$rc" && answer="no answer for $COMMAND_TIMEOUT_SECONDS s"
        now=`date +%s`
        left=$((START_TIMEOUT_SECONDS - now + started))
        quote "$answer"
        if [ "$left" -le 0 ]; then
            case $rc in
                9) hint="the driver is not loaded on this node" ;;
                18) hint="driver and libraries differ in version: reboot the node" ;;
                *) hint="runtimeClassName nvidia, NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility bring nvidia-smi into this container; its image needs glibc" ;;
            esac
            log error "msg=\"nvidia-smi -L failed rc=$rc for $START_TIMEOUT_SECONDS s, giving up\" output=$quoted hint=\"$hint\""
            exit 69
        fi
        log warn "msg=\"nvidia-smi -L failed rc=$rc, waiting\" left=$left output=$quoted"
        beat
        [ "$left" -le "$RETRY_SECONDS" ] || left=$RETRY_SECONDS
        pause "$left"
    done
}

give_up_when_blind() { # NVML that broke under a running container comes back in a new one alone
    : "${blind_since:=$beaten}"
    [ "$ONESHOT" = 0 ] && [ $((beaten - blind_since)) -ge "$START_TIMEOUT_SECONDS" ] || return 0
    log error "msg=\"nvidia-smi shows no GPU or does not answer for $START_TIMEOUT_SECONDS s, giving up\" hint=\"the container starts again with the node's devices and libraries\""
    exit 69
}

# Process 1 of a container does not even notice a signal that it has no trap for.
trap leave TERM INT
mkdir -p "$STATE_DIR" 2>/dev/null || refuse "STATE_DIR cannot be made: $STATE_DIR"
forget ready heartbeat # of a killed predecessor
check_configuration
wait_for_nvidia_smi

blind_since=''
while :; do
    if limit_all; then
        keep ready ''
        next=$INTERVAL_SECONDS
    else
        forget ready
        next=$RETRY_SECONDS
        log warn "msg=\"pass failed\" retry=$next"
    fi
    beat
    if [ "$seen" -gt 0 ] && [ -z "$hung" ]; then
        blind_since=''
    else
        give_up_when_blind
    fi
    [ "$ONESHOT" = 0 ] || exit "$failed"
    pause "$next"
done
