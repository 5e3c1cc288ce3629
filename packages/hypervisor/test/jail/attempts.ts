/**
 * What a guest that has broken out of QEMU would try. Each is Perl whose value says whether it worked; `$!` says why not.
 * docs/security.md has the same table for people.
 */

export interface Attempt {
  what: string;
  code: string;
  /** How it ends in a jail made by root. `done` for what must work. */
  expected: RegExp;
  /** The same without root. By default, the same. */
  withoutRoot?: RegExp;
}

const CONNECT =
  'use Socket; sub to { my ($port, $host) = @_; socket(my $s, AF_INET, SOCK_STREAM, 0) or return 0; alarm 3; $SIG{ALRM} = sub { die "no answer\\n" }; connect($s, sockaddr_in($port, inet_aton($host))) }';
const UNIX =
  "use Socket; sub unix { socket(my $s, AF_UNIX, SOCK_STREAM, 0) or return 0; connect($s, sockaddr_un($_[0])) }";

const NOT_THERE = /^refused: No such file or directory$/;
const NOT_PERMITTED = /^refused: Operation not permitted$/;
const READ_ONLY = /^refused: Read-only file system$/;
const NO_SUCH_PROCESS = /^refused: No such process$/;
const UNREACHABLE = /^refused: (Network is unreachable|Cannot assign requested address)$/;

const reading = (what: string, path: string): Attempt => ({
  what: `read ${what}`,
  code: `open(my $f, '<', ${path})`,
  expected: NOT_THERE,
});

const calling = (what: string, call: string, expected = NOT_PERMITTED): Attempt => ({
  what,
  // Perl passes pointers to variables only.
  code: `my ($name, $where, $kind) = ("/dev/x", "/dev", "tmpfs"); syscall(${call}) != -1`,
  expected,
});

export const ATTEMPTS: readonly Attempt[] = [
  // Its own work continues.
  { what: "write to its own layer", code: 'my $f; open($f, "+<", $p{layer}) && syswrite($f, "x")', expected: /^done$/ },
  // Files of others.
  reading("the platform's database", '"$p{data}/hibernaut.db"'),
  reading("the key of all secrets", '"$p{data}/secrets.key"'),
  reading("the admin's token", '"$p{data}/config.json"'),
  reading("another machine's memory", "$p{other_memory}"),
  reading("the host's passwords", '"/etc/shadow"'),
  reading("the list of processes", '"/proc/1/cmdline"'),
  reading("the host's disk", '"/dev/vda"'),
  { what: "list home directories", code: 'opendir(my $d, "/home")', expected: NOT_THERE },
  { what: "connect to another machine's QEMU", code: `${UNIX} unix("$p{other_run}/qmp.sock")`, expected: NOT_THERE },
  {
    what: "find a descriptor that was left open",
    code: 'my @open = grep { syscall(72, $_, 1, 0) != -1 } 3..1023; die "only @open\\n"',
    expected: /^refused: only 5 6 7$/,
    withoutRoot: /^refused: only 5 6$/,
  },
  // Writing outside, and filling the disk.
  { what: "write to the root directory", code: 'open(my $f, ">", "/x")', expected: READ_ONLY },
  {
    what: "write to the host's programs",
    code: 'open(my $f, ">>", "/usr/bin/perl")',
    expected: /^refused: (Permission denied|Read-only file system)$/,
  },
  {
    what: "write to the image, which machines share",
    code: 'open(my $f, ">>", "$p{data}/image")',
    expected: /^refused: (Permission denied|Read-only file system)$/,
  },
  { what: "make a file next to its sockets", code: 'open(my $f, ">", "$p{run}/x")', expected: READ_ONLY },
  { what: "write to /dev", code: 'open(my $f, ">", "/dev/x")', expected: READ_ONLY },
  {
    what: "fill the disk with its own files",
    code: '$SIG{XFSZ} = "IGNORE"; open(my $f, "+<", $p{layer}); truncate($f, 1024 ** 4)',
    expected: /^refused: File too large$/,
  },
  {
    what: "take space beyond the end of its own files",
    code: 'my $f; open($f, "+<", $p{layer}); syscall(285, fileno($f), 1, 0, 1 << 31) != -1',
    expected: /^refused: Operation not supported$/,
  },
  {
    what: "make holes in its own files",
    code: 'my $f; open($f, "+<", $p{layer}); syscall(285, fileno($f), 3, 0, 4096) != -1',
    expected: /^done$/,
  },
  {
    what: "hold up those who open its own files",
    code: 'my $f; open($f, "+<", $p{layer}); syscall(72, fileno($f), 1024, 1) != -1',
    expected: NOT_PERMITTED,
  },
  // The network.
  {
    what: "reach the API on the host's loopback",
    code: `${CONNECT} to($p{api}, "127.0.0.1")`,
    expected: /^refused: (Network is unreachable|Connection refused)$/,
    withoutRoot: /^done$/,
  },
  {
    what: "reach a cloud's metadata address",
    code: `${CONNECT} to(80, "169.254.169.254")`,
    expected: UNREACHABLE,
    withoutRoot: /./,
  },
  {
    what: "make a packet socket",
    code: "use Socket; socket(my $s, 17, 3, 0)",
    expected: /^refused: Address family not/,
  },
  {
    what: "make a netlink socket",
    code: "use Socket; socket(my $s, 16, 3, 0)",
    expected: /^refused: Address family not/,
  },
  {
    what: "reach the host by vsock",
    code: "use Socket; socket(my $s, 40, 1, 0)",
    expected: /^refused: Address family not/,
  },
  { what: "open another machine's tap", code: 'open(my $f, "+<", "/dev/net/tun")', expected: NOT_THERE },
  // Other processes.
  { what: "signal the platform", code: "kill(0, $p{host_pid})", expected: NO_SUCH_PROCESS },
  { what: "end every process", code: "kill(9, -1)", expected: NO_SUCH_PROCESS },
  { what: "change the platform's priority", code: "setpriority(0, $p{host_pid}, 19)", expected: NO_SUCH_PROCESS },
  { what: "raise its own priority", code: "setpriority(0, 0, -20)", expected: /^refused: Permission denied$/ },
  calling("trace a process", "101, 16, $p{host_pid} + 0, 0, 0"),
  calling("read another process's memory", "310, $p{host_pid} + 0, 0, 0, 0, 0, 0"),
  // Rights.
  {
    what: "become root",
    code: "$! = 0; $< = 0; $! == 0 && $< == 0",
    expected: NOT_PERMITTED,
    withoutRoot: /^refused: Invalid argument$/,
  },
  {
    what: "become root through a program that may",
    code: 'my $out = `/usr/bin/su -c id 2>&1`; $out =~ /uid=0/ or die "not root\\n"',
    expected: /^refused: not root$/,
  },
  calling("have the kernel make its system calls", "425, 8, $name", /^refused: Function not implemented$/),
  calling("make a user namespace", "272, 0x10000000"),
  calling("make a namespace by clone", "56, 0x10000011, 0, 0, 0, 0"),
  calling("mount a file system", "165, $name, $where, $kind, 0, 0"),
  calling("change its root", "161, $where"),
  calling("make a device", "133, $name, 0060666, 0x800", /^refused: (Operation not permitted|Read-only file system)$/),
  calling("load a kernel module", "313, 0, $name, 0"),
  calling("program the kernel", "321, 0, 0, 0"),
  calling("read the kernel's log", "103, 3, 0, 0"),
  calling("use the kernel's keys", "250, 0, 0, 0, 0, 0"),
  calling("set the host's clock", "227, 0, 0"),
  calling("call the kernel as a 32-bit program does", "0x40000027"),
];

/** The Perl that makes an attempt and says how it went. */
export function attempt({ code }: Attempt): string {
  return `my $done = eval { ${code} }; my $why = $@ || "$!"; chomp $why; print $done ? "done" : "refused: $why", "\\n";`;
}

/** Starts processes until it may not, and says how many that were. */
export const FORK =
  'my $made = 0; while ($made < 2000) { my $pid = fork(); last unless defined $pid; if ($pid == 0) { sleep 30; exit } $made++ } print "$made $!"; kill 9, -1;';
