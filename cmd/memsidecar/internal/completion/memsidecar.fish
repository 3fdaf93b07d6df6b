# Completion of memsidecar for fish: memsidecar completion fish | source
function __memsidecar_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l candidates (memsidecar __complete -- $words[2..-1] 2>/dev/null)
    if test "$candidates[1]" = :files
        __fish_complete_path (commandline -ct)
        return
    end
    printf '%s\n' $candidates
end
complete -c memsidecar -f -a '(__memsidecar_complete)'
