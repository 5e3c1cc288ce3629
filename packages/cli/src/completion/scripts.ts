/**
 * What shells need to ask `hibernaut __complete`. It prints one word per line, a tab and a description; the line `:files`
 * asks the shell to complete a path.
 */

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export const FILES = ":files";

// Bash cuts words at `:` and `=`, and expects only what follows the last of them.
const BASH = `# hibernaut completion for bash
_hibernaut() {
  local line cur skip words
  read -ra words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
  cur=\${words[-1]}
  skip=\${cur%"\${cur##*[:=]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ${FILES} ]]; then
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "\${cur#"$skip"}")
      compopt -o filenames 2>/dev/null
    else
      line=\${line%%$'\\t'*}
      COMPREPLY+=("\${line#"$skip"}")
    fi
  done < <("\${words[0]}" __complete -- "\${words[@]:1}" 2>/dev/null)
  # An option that takes a value with = is not finished yet.
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
complete -F _hibernaut hibernaut hib
`;

const ZSH = `#compdef hibernaut hib
# hibernaut completion for zsh
_hibernaut() {
  local line word
  local -a choices
  for line in "\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -z $line ]] && continue
    if [[ $line == ${FILES} ]]; then
      _files
      continue
    fi
    word=\${line%%$'\\t'*}
    choices+=("\${word//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( $#choices )); then _describe hibernaut choices; fi
}
compdef _hibernaut hibernaut hib
`;

const FISH = `# hibernaut completion for fish
function __hibernaut_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = ${FILES}
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c hibernaut -f -a '(__hibernaut_complete)'
complete -c hib -f -a '(__hibernaut_complete)'
`;

export const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
