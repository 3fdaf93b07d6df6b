#compdef memsidecar
# Completion of memsidecar for zsh: source <(memsidecar completion zsh)
_memsidecar() {
    local -a candidates described
    local candidate tab=$'\t'
    candidates=("${(@f)$(memsidecar __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ ${candidates[1]} == :files ]]; then
        _files
        return
    fi
    for candidate in "${candidates[@]}"; do
        [[ -n $candidate ]] || continue
        described+=("${${candidate%%$tab*}//:/\\:}:${${candidate#*$tab}//:/\\:}")
    done
    _describe memsidecar described
}
if [[ ${funcstack[1]} == _memsidecar ]]; then
    _memsidecar
else
    compdef _memsidecar memsidecar
fi
