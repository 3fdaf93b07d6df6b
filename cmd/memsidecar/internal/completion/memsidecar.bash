# Completion of memsidecar for bash: source <(memsidecar completion bash)
_memsidecar() {
    COMPREPLY=()
    local candidate
    while IFS= read -r candidate; do
        if [[ $candidate == :files ]]; then
            compopt -o default
            return
        fi
        COMPREPLY+=("${candidate%%$'\t'*}")
    done < <(memsidecar __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    # bash completes only what follows the last "=".
    if [[ ${COMP_WORDS[COMP_CWORD]} == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#*=}")
    fi
}
complete -F _memsidecar memsidecar
