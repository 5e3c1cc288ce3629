/**
 * What is done with files of a volume in the sandbox that has it, as scripts for its shell, which run as root. `$1` is where
 * the volume is mounted, `$2` a path in it that begins with `/` and has neither `.` nor `..`. The agent's own tasks do the
 * rest: they tell names of users, not their numbers, and one of the three times of a file.
 */

/** Exit codes, as those of the agent's tasks. */
const [NOT_FOUND, REFUSED, EXISTS, NOT_DIRECTORY, IS_DIRECTORY] = [2, 3, 4, 5, 6];

/** Fields of an entry, each with a zero byte after it: find's letter for the type, and what {@link entriesIn} reads. */
const RECORD = String.raw`%y\0%s\0%m\0%U\0%G\0%A@\0%T@\0%C@\0%p\0%l\0`;

/**
 * `at` finds an entry without following the last part of its path, and `real` with it. Neither leaves the volume by a link. Each
 * sets `found`.
 */
const BEGIN = `
fail() { echo "$2" >&2; exit "$1"; }
resolved() { found=$(realpath "$1" -- "$2" 2>/dev/null && echo /) || fail ${NOT_FOUND} "There is no $path"; found=\${found%??}; }
inside() { case "$found/" in "$root"/*) ;; *) fail ${REFUSED} "$path leads out of the volume";; esac; }
show() { find "$found" -maxdepth 0 -printf '${RECORD}'; }
path=$2
resolved -e "$1"; root=$found
real() { resolved "$1" "$root$path"; inside; }
at() {
  if [ "$path" = / ]; then return; fi
  resolved -e "$root\${path%/*}"; inside; found=$found/\${path##*/}
  [ -e "$found" ] || [ -L "$found" ] || fail ${NOT_FOUND} "There is no $path"
}
`;

/** Prints the entry. */
export const STAT = `${BEGIN} at; show`;

/** Prints where the file is whose contents are wanted. */
export const FIND_FILE = `${BEGIN} real -e
[ ! -d "$found" ] || fail ${IS_DIRECTORY} "$path is a directory"
printf '%s' "$found"`;

/** Prints where the directory is, and what is in it, down to the depth \`$3\`. */
export const LIST = `${BEGIN} real -e
[ -d "$found" ] || fail ${NOT_DIRECTORY} "$path is not a directory"
printf '%s\\0' "$found"
find "$found" -mindepth 1 -maxdepth "$3" -printf '${RECORD}'`;

/** Prints where a file may be written; with \`$3\`, in the place of another one. Its directory has to be there. */
export const MAY_WRITE = `${BEGIN} real -m
[ ! -d "$found" ] || fail ${EXISTS} "$path is a directory"
[ -z "$3" ] && [ -e "$found" ] && fail ${EXISTS} "$path is there already, and is replaced with force only"
[ -d "\${found%/*}" ] || fail ${NOT_FOUND} "There is no directory for $path"
printf '%s' "$found"`;

/** Prints where a directory may be made; with \`$3\`, also where those above it are not there, or it is. */
export const MAY_MAKE = `${BEGIN} real -m
[ ! -e "$found" ] || { [ -n "$3" ] && [ -d "$found" ]; } || fail ${EXISTS} "$path is there already"
[ -n "$3" ] || [ -d "\${found%/*}" ] || fail ${NOT_FOUND} "There is no directory for $path"
printf '%s' "$found"`;

/** Gives the entry to user \`$3\` and group \`$4\`, with the mode \`$5\`, each unless it is empty, and prints it. */
export const CHANGE = `${BEGIN} at
if [ -n "$3$4" ]; then chown -h "$3\${4:+:$4}" "$found" || exit ${REFUSED}; fi
if [ -n "$5" ]; then
  [ ! -L "$found" ] || fail ${REFUSED} "$path is a link, which has no mode of its own"
  chmod "$5" "$found" || exit ${REFUSED}
fi
show`;

/** Prints where the entry is that is to be removed: not the volume itself. */
export const MAY_REMOVE = `${BEGIN} at
[ "$path" != / ] || fail ${REFUSED} "The root of a volume cannot be removed"
printf '%s' "$found"`;

/** Gives volumes that are empty to the user \`$1\`, if there is one; \`$2\` and what follows are where they are mounted. */
export const GIVE_TO_USER = `user=$1; shift
id "$user" >/dev/null 2>&1 || exit 0
for root; do
  if [ -z "$(ls -A "$root")" ] && [ "$(stat -c %u "$root")" = 0 ]; then chown "$user:$(id -g "$user")" "$root"; fi
done`;
