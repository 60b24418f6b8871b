#!/bin/sh
# Keeps a copy of libnvidia-ml.so.1 and of nvidia-smi in STAGE_DIR, where the
# GPU Operator's validator looks for a driver, for as long as the NVIDIA driver
# of this node is live, and takes the copies back when it is not.
#
#   kubectl logs      the reason, once each time it changes
#   STATE_DIR/ready   both copies equal the node's own files (readiness)
#   STATE_DIR/alive   touched at the end of every turn (liveness)
#
# In STAGE_DIR the two names usr/lib64/libnvidia-ml.so.1 and usr/bin/nvidia-smi
# belong to this script, no matter what wrote them: copies outlive a reboot, and those
# of an older driver must go. All other files are left alone. Nothing that is
# copied is run here.
# A variable that is unset or empty gets its default.
# shellcheck disable=SC2006 # bash 5.2 loses a signal that comes while it reads $(
# shellcheck disable=SC2034 # variables set here and read in the part that all strategies share
set -u
umask 022

: "${SOURCE_LIB_DIR:=/usr/local/glibc/usr/lib}"
: "${SOURCE_BIN_DIR:=/usr/local/bin}"
: "${STAGE_DIR:=/var/lib/gpu-constructs/driver}"

directory=$STAGE_DIR
published='its files are copied'
library=$STAGE_DIR/usr/lib64/libnvidia-ml.so.1
program=$STAGE_DIR/usr/bin/nvidia-smi

# A link would lead nowhere in the validator, which sees STAGE_DIR alone.
is_staged() {
    [ -f "$2" ] && [ ! -h "$2" ] && { [ "$3" = 0644 ] || [ -x "$2" ]; } && cmp -s "$1" "$2"
}

# A program that opens the final name finds a whole file or none.
copy() {
    if [ -d "$2" ]; then
        echo 'it is a directory'
        return 1
    fi
    temp=${2%/*}/.gpu-constructs.${2##*/}.$writer
    mkdir -p "${2%/*}" &&
        cp "$1" "$temp" &&
        cmp "$1" "$temp" &&
        chmod "$3" "$temp" &&
        mv -f "$temp" "$2" &&
        return
    rm -f "$temp"
    return 1
}

stage() {
    is_staged "$1" "$2" "$3" && return
    if ! error=`copy "$1" "$2" "$3" 2>&1`; then
        reason="cannot write $2: $error"
        return 1
    fi
    log "copied $1 to $2"
}

publish() {
    for source in "$SOURCE_LIB_DIR/libnvidia-ml.so.1" "$SOURCE_BIN_DIR/nvidia-smi"; do
        [ -f "$source" ] && [ -s "$source" ] && continue
        reason="$source is missing or empty"
        retract
        return 1
    done
    if [ -d "$STAGE_DIR/dev" ]; then
        reason="$STAGE_DIR/dev must go: the validator would take it for the place of the device nodes"
        return 1
    fi
    stage "$SOURCE_LIB_DIR/libnvidia-ml.so.1" "$library" 0644 &&
        stage "$SOURCE_BIN_DIR/nvidia-smi" "$program" 0755
}

retract() {
    for file in "$program" "$library"; do
        if [ -e "$file" ] || [ -h "$file" ]; then
            take_back "$file"
        fi
    done
}

# The two names are ours as they are.
adopt() {
    :
}

remove_temp_files() {
    rm -f "${library%/*}"/.gpu-constructs.* "${program%/*}"/.gpu-constructs.*
}
