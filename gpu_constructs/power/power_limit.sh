#!/bin/sh
# Sets the power limit of every GPU of this node, reads it back, and repeats this
# every INTERVAL_SECONDS, because a driver reload or a GPU reset loses the limit.
#
#   kubectl logs           logfmt: for each GPU a line with its usage and a line with the result
#   STATE_DIR/ready        exists if the last pass set every requested limit (readiness)
#   STATE_DIR/heartbeat    end of the last pass, in seconds of the epoch (liveness)
#
# Exit codes: 0 stopped, or ONESHOT without problems; 1 ONESHOT with a problem;
# 64 invalid configuration; 69 nvidia-smi shows no GPU or does not answer for
# START_TIMEOUT_SECONDS. A new container then gets new devices and libraries.
# An unset or empty variable has its default.
# shellcheck disable=SC2006 # bash 5.2 loses a signal that arrives while it parses $(
set -u
umask 022
export LC_ALL=C

# A requested limit is whole watts (300), a share of the GPU's default limit (80%) or the
# word default. If POWER_LIMIT is empty, GPUs without a rule keep their limit.
: "${POWER_LIMIT:=}"
# One rule in each line. Precedence: uuid, pci, index, name; then the first line.
#   uuid:GPU-5e0c...=280   pci:0000:01:00.0=280   index:0=280   name:*RTX 3090=280
: "${POWER_LIMITS:=}"
: "${OUT_OF_RANGE:=clamp}" # or refuse, if a requested limit is outside the range of the GPU
: "${INTERVAL_SECONDS:=1800}"
: "${RETRY_SECONDS:=15}" # replaces INTERVAL_SECONDS after a failed pass
: "${START_TIMEOUT_SECONDS:=300}"
: "${COMMAND_TIMEOUT_SECONDS:=20}" # for each call of nvidia-smi
: "${PERSISTENCE_MODE:=1}"
: "${RESTORE_ON_EXIT:=0}"
: "${ONESHOT:=0}"
: "${STATE_DIR:=/tmp}"
: "${METRICS_FILE:=}" # textfile for node_exporter; its directory must exist
: "${NVIDIA_SMI:=nvidia-smi}"

FIELDS=index,uuid,pci.bus_id,name
FIELDS=$FIELDS,power.limit,power.min_limit,power.max_limit,power.default_limit,enforced.power.limit,power.draw
FIELDS=$FIELDS,utilization.gpu,utilization.memory,memory.used,temperature.gpu

# Separates the fields of a row, because the name of a board may contain any other character.
separator=`printf '\037'`

corrupted="the infoROM of a GPU is corrupted; setting its limit still works"

asleep=''
has_begun='' # not empty if the script may have set a limit

log() { # level, rest of the line
    printf 'ts=%s level=%s %s\n' "`date -u +%Y-%m-%dT%H:%M:%SZ`" "$1" "$2"
}

plain() { # any text -> text without characters that end a quoted value of logfmt
    printf '%s' "$1" | tr '\n\r\t\037"\134' "    '/"
}

quote() { # any text -> $quoted, a value of logfmt
    quoted=\"`plain "$1"`\"
}

lower() {
    printf '%s' "$1" | tr '[:upper:]' '[:lower:]'
}

label_value() { # any text -> text between the quotes of METRICS_FILE
    printf '%s' "$1" | sed 's/["\\]/\\&/g'
}

smi() { # calls nvidia-smi with a time limit; rc 124, 137 or 143 after a timeout
    timeout -k 2 "$COMMAND_TIMEOUT_SECONDS" "$NVIDIA_SMI" "$@" 2>&1 </dev/null
}

has_hung() { # rc of smi
    case $1 in
        124 | 137 | 143) hung=yes ;;
        *) return 1 ;;
    esac
}

reject() {
    quote "$1"
    log error "msg=$quoted"
    exit 64
}

# --- configuration ----------------------------------------------------------

is_request() {
    case $1 in
        default) return 0 ;;
    esac
    case ${1%\%} in
        '' | 0* | *[!0-9]* | ?????*) return 1 ;;
    esac
}

check_rule() {
    is_request "${1##*=}" || reject "POWER_LIMITS: '$1' must end in '=' and watts, NN% or default"
    target=${1%=*}
    case $target in
        uuid:GPU-?* | name:?*) return ;;
        index:0 | index:[1-9]*) value=${target#index:} allowed=0-9 ;;
        pci:?*:?*.[0-7]) value=${target#pci:} allowed=0-9A-Fa-f:. ;;
        *) value='' allowed='' ;;
    esac
    case $value in
        '' | *[!$allowed]*)
            reject "POWER_LIMITS: '$1' must start with uuid:GPU-..., pci:<bus id>, index:<number> or name:<glob>"
            ;;
    esac
}

check_seconds() { # variable, value, least
    case $2 in
        *[!0-9]* | 0?* | ???????????????????*) ;;
        *) [ "$2" -ge "$3" ] && return ;;
    esac
    reject "$1 must be a whole number of seconds, $3 or more, got '$2'"
}

check_choice() { # variable, value, the two choices
    [ "$2" = "$3" ] || [ "$2" = "$4" ] || reject "$1 must be one of '$3', '$4', got '$2'"
}

check_configuration() {
    [ -z "$POWER_LIMIT" ] || is_request "$POWER_LIMIT" ||
        reject "POWER_LIMIT must be whole watts, NN%, default or empty, got '$POWER_LIMIT'"
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

# Shells have no fractions, so the script compares limits in hundredths of a watt.
hundredths() { # 300.5 -> $hundredths=30050; fails for [N/A] and similar texts
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
    # Without the leading 1, the shell would read 08 as octal.
    hundredths=$((whole * 100 + 1$fraction - 100))
}

is_about() { # hundredths, watts: a board may report 299.98 for 300
    [ $(($1 - $2 * 100)) -lt 100 ] && [ $(($2 * 100 - $1)) -lt 100 ]
}

bus() { # 00000000:0A:00.0, 0000:0a:00.0 and 0a:00.0 are the same device
    echo "$1" | sed -e y/ABCDEF/abcdef/ -e 's/^0*\([^:]*:[^:]*:\)/\1/' -e t -e 's/^/:/'
}

request_for() { # index, uuid, PCI bus ID, name -> $requested and its $rule
    requested=$POWER_LIMIT rule=POWER_LIMIT best=0
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
                # shellcheck disable=SC2254 # the pattern is a glob
                case $4 in
                    $pattern) rank=1 ;;
                esac
                ;;
        esac
        [ "$rank" -gt "$best" ] && best=$rank requested=${line##*=} rule=$target
    done <<EOF
$POWER_LIMITS
EOF
}

# --- one pass ---------------------------------------------------------------

query() { # prints a line for each GPU: FIELDS with $separator, [Not Supported] as [Not_Supported]
    answer=`smi --query-gpu="$FIELDS" --format=csv,noheader,nounits`
    rc=$?
    # A row has three fields before the name and ten after it. A line with fewer commas is a warning.
    printf '%s\n' "$answer" | sed -e '/\(,[^,]*\)\{13\}/!b' \
        -e "s/, */$separator/;s/, */$separator/;s/, */$separator/" \
        -e "s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/" \
        -e "s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/" \
        -e "s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/;s/, *\([^,]*\)\$/$separator\1/" \
        -e "s/, *\([^,]*\)\$/$separator\1/" \
        -e :a -e "s/\($separator\[[^]$separator]*\) /\1_/" -e ta
    return "$rc"
}

record() { # requested watts or empty; adds the lines of a GPU for METRICS_FILE
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
    text="# HELP gpu_power_limit_watts Power limit that the driver reports.
# TYPE gpu_power_limit_watts gauge$limit_lines
# HELP gpu_power_limit_desired_watts Requested power limit, within the range of the GPU.
# TYPE gpu_power_limit_desired_watts gauge$desired_lines
# HELP gpu_power_limit_last_check_timestamp_seconds Time of the last check.
# TYPE gpu_power_limit_last_check_timestamp_seconds gauge$checked_lines"
    # node_exporter reads *.prom, so the unfinished file needs another ending.
    temp=$METRICS_FILE.$$
    error=`{ printf '%s\n' "$text" >"$temp" && mv -f "$temp" "$METRICS_FILE"; } 2>&1` && return
    rm -f "$temp"
    quote "$error"
    log warn "msg=\"cannot write METRICS_FILE\" file=\"$METRICS_FILE\" output=$quoted"
}

limit_gpu() { # handles the row that limit_all read
    where="gpu=$index uuid=$uuid"
    request_for "$index" "$uuid" "$pci" "$name"
    if [ -z "$requested" ]; then
        record ''
        log info "$where msg=\"no limit requested\""
        return 0
    fi

    needed=$limit,$min,$max base=0
    case $requested in
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
        case $requested in
            default | *%) hundredths "$default" && base=$hundredths || readable=no ;;
        esac
    fi
    if [ "$readable" = no ]; then
        log error "$where msg=\"cannot read the limits\" limit=$limit min=$min max=$max default=$default"
        return 1
    fi

    case $requested in
        default) watts=$((base / 100)) ;;
        *%) watts=$((base * ${requested%\%} / 10000)) ;;
        *) watts=$requested ;;
    esac
    quote "$rule"
    from="requested=$requested rule=$quoted"
    if [ "$least" -gt "$most" ] && [ "$OUT_OF_RANGE" = clamp ]; then # no whole watt in the range
        record "$limit"
        log warn "$where msg=\"fixed limit\" $from requested_watts=$watts limit=$limit min=$min max=$max"
        return 0
    fi
    if [ "$watts" -lt "$least" ] || [ "$watts" -gt "$most" ]; then
        if [ "$OUT_OF_RANGE" = refuse ]; then
            record ''
            log error "$where msg=\"out of range, refused\" $from watts=$watts min=$min max=$max"
            return 1
        fi
        requested_watts=$watts
        [ "$watts" -lt "$least" ] && watts=$least
        [ "$watts" -gt "$most" ] && watts=$most
        log warn "$where msg=\"clamped\" $from requested_watts=$requested_watts watts=$watts min=$min max=$max"
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
    # nvidia-smi may report success but change nothing, so only the value counts.
    limit=`query | grep -F "$separator$uuid$separator" | cut -d "$separator" -f 5`
    record "$watts"
    if ! hundredths "$limit" || ! is_about "$hundredths" "$watts"; then
        quote "$answer"
        log error "$where msg=\"accepted but not applied\" watts=$watts limit=$limit output=$quoted"
        return 1
    fi
    log info "$where msg=\"set\" watts=$watts before=$before $from"
}

set_limit() { # watts; returns 2 if the GPU has no adjustable limit, which nvidia-smi may report as success
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
        problem="not supported"
        [ "$rc" -eq 0 ] || problem="not supported, set failed rc=$rc"
        hint="this GPU has no adjustable power limit"
        log warn "gpu=$index uuid=$uuid msg=\"$problem\" watts=$1 output=$quoted hint=\"$hint\""
        return 2
    fi
    hint=''
    case $rc in
        4) hint="needs CAP_SYS_ADMIN: set runAsUser 0, add the capability SYS_ADMIN, do not set hostUsers to false" ;;
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
            # The script still handles rows in the output.
            failed=1
            log error "msg=\"query failed rc=$query_rc\" output=$quoted"
            ;;
    esac
    while IFS=$separator read -r index uuid pci name limit min max default enforced draw util memutil memory temperature; do
        if [ -z "$temperature" ]; then # not a row, but a warning of nvidia-smi
            quote "$index"
            [ -z "$index" ] || [ "$query_rc" -ne 0 ] || log warn "msg=\"warning of nvidia-smi\" output=$quoted"
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

keep() { # file in STATE_DIR, content
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

pause() { # seconds; sleeps in the background, so that the shell handles a signal immediately
    asleep=yes
    sleep "$1" &
    wait "$!"
    asleep=''
}

restore() {
    table=`query`
    while IFS=$separator read -r index uuid pci name limit min max default rest; do
        [ -n "$rest" ] || continue
        request_for "$index" "$uuid" "$pci" "$name"
        if [ -n "$requested" ] && [ "$limit" != "$default" ] && hundredths "$default"; then
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
        # A lost GPU or a corrupted infoROM also causes an error. Rows in the output count as success.
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
                *) hint="runtimeClassName nvidia, NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility mount nvidia-smi in this container; its image needs glibc" ;;
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

give_up_when_blind() { # if NVML breaks in a running container, only a new container repairs it
    : "${blind_since:=$beaten}"
    [ "$ONESHOT" = 0 ] && [ $((beaten - blind_since)) -ge "$START_TIMEOUT_SECONDS" ] || return 0
    log error "msg=\"nvidia-smi shows no GPU or does not answer for $START_TIMEOUT_SECONDS s, giving up\" hint=\"the container restarts with the devices and libraries of the node\""
    exit 69
}

# Process 1 of a container ignores a signal without a trap.
trap leave TERM INT
mkdir -p "$STATE_DIR" 2>/dev/null || reject "STATE_DIR must be a folder that the container can create, got '$STATE_DIR'"
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
