/** What people type by habit after other tools, and what to use here. */

/**
 * What other tools call our commands, and the command to use instead.
 */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  auth: "For images: hibernaut registry login <host>. For the API: hibernaut tokens create <name>.",
  autoscale: "By hand: hibernaut scale count 2. Machines sleep and wake by themselves.",
  checks: "Checks are part of hibernaut machine status [id].",
  create: "hibernaut apps create <name>, or hibernaut machine create <image>.",
  curl: "With curl itself, at the address that hibernaut open prints.",
  dashboard: "The dashboard is at the address of the API: see hibernaut status.",
  docs: "The documentation is in the directory docs of this project, and every command has --help.",
  domains: "Custom hostnames: hibernaut hostnames add <hostname>.",
  env: "Set variables in the app file, or with hibernaut machine update [id] --env NAME=value. Secrets: hibernaut secrets set NAME=value.",
  history: "hibernaut releases, or hibernaut machine events [id].",
  info: "The platform: hibernaut status. A machine: hibernaut machine status [id].",
  init: "To write an app file for this directory: hibernaut launch.",
  ips: "An app answers at its hostnames: hibernaut hostnames list, or hibernaut open.",
  login: "For images: hibernaut registry login <host>. For the API: hibernaut tokens create <name>.",
  monitor: "hibernaut top, or hibernaut logs --follow.",
  mpg: "There are no managed databases: run one with hibernaut machine run, or use one elsewhere.",
  mysql: "There are no managed databases: run one with hibernaut machine run, or use one elsewhere.",
  orgs: "A platform has no organizations.",
  pg: "There are no managed databases: run one with hibernaut machine run, or use one elsewhere.",
  platform: "hibernaut status.",
  postgres: "There are no managed databases: run one with hibernaut machine run, or use one elsewhere.",
  redis: "There are no managed databases: run one with hibernaut machine run, or use one elsewhere.",
  regions: "A platform has one region: hibernaut status.",
  resume: "hibernaut start [id].",
  rm: "hibernaut machine destroy <id>, hibernaut apps destroy <name> or hibernaut volumes destroy <id>.",
  rollback: "Deploy an older image: hibernaut deploy --image <reference>, with a reference from hibernaut releases.",
  run: "To run an image: hibernaut machine run <image> --app <name>.",
  server: "To start the platform: hibernaut serve.",
  services: "Services are part of hibernaut machine status [id].",
  sftp: "hibernaut cp <source> <target>.",
  sh: "A shell in a machine: hibernaut console [id].",
  shell: "A shell in a machine: hibernaut console [id].",
  ssh: "A shell in a machine: hibernaut console [id]. One command: hibernaut exec [id] -- <command>.",
  why: "hibernaut machine why [id].",
  update: "One machine: hibernaut machine update [id]. The whole app: hibernaut deploy.",
  "machine ssh": "A shell: hibernaut machine console [id].",
  "machine kill": "hibernaut machine stop [id], or hibernaut machine destroy <id> --force.",
  "machine logs": "hibernaut logs -m <id>.",
  "machine remove": "hibernaut machine destroy <id>.",
  "apps open": "hibernaut open --app <name>.",
  "apps restart": "hibernaut restart [id] --app <name>.",
  "apps suspend": "hibernaut suspend [id] --app <name>.",
  "apps logs": "hibernaut logs --app <name>.",
  "scale vm": "Memory: hibernaut scale memory 512mb. CPUs: hibernaut machine update [id] --cpus 2.",
  "scale cpu": "hibernaut machine update [id] --cpus 2.",
  "scale cpus": "hibernaut machine update [id] --cpus 2.",
  "images show": "The image of a machine: hibernaut machine status [id].",
  "secrets deploy": "Leave it out. A running machine sees its secrets after hibernaut restart [id].",
  "tokens deploy": "hibernaut tokens create <name> --scope deploy --app <app>.",
  "volumes fork": "hibernaut volumes snapshots create <id>, and hibernaut volumes create <name> --snapshot-id <id>.",
  "secrets show": "Values are never shown again. Names and digests: hibernaut secrets list.",
};

/** Options that people type by habit after flyctl's `launch` and `deploy`, and what to do instead. */
export const OPTIONS_ELSEWHERE: Readonly<Record<string, string>> = {
  "launch --org": "Leave it out: a platform has no organizations.",
  "launch -o": "Leave it out: a platform has no organizations.",
  "launch --region": "Leave it out, and name the region when you deploy: hibernaut deploy --region <region>.",
  "launch -r": "Leave it out, and name the region when you deploy: hibernaut deploy --region <region>.",
  "launch --copy-config": "An app file that is there works as it is: leave out launch, and run hibernaut deploy.",
  "launch --generate-name":
    "Leave it out: the name is the package's or the directory's. --name <name> chooses another.",
  "launch --app": "The name of the app: --name <name>.",
  "launch -a": "The name of the app: --name <name>.",
  "launch --vm-size": "Use --vm-memory 512mb and --vm-cpus 2, or write size under [[vm]] in the app file.",
  "launch --vm-cpu-kind": "Leave it out: there is one kind of CPU.",
  "launch --ha": "Leave it out: one machine is created. For two: hibernaut scale count 2, after the first deploy.",
  "launch --dockerfile": 'Write dockerfile = "<path>" under [build] in the app file.',
  "launch --env": "Write it under [env] in the app file.",
  "launch -e": "Write it under [env] in the app file.",
  "launch --secret": "After the first deploy: hibernaut secrets set NAME=value.",
  "launch --local-only": "Leave it out: images are built on this machine.",
  "launch --remote-only": "Leave it out: images are built on this machine.",
  "launch --strategy": "Name it when you deploy: hibernaut deploy --strategy <strategy>.",
  "launch --from": "Clone the repository yourself, and run hibernaut launch in its directory.",
  "deploy --yes": "Leave it out: a deploy asks nothing.",
  "deploy -y": "Leave it out: a deploy asks nothing.",
  "deploy --now": "Leave it out: a deploy begins at once.",
  "deploy --ha": "Leave it out: a first deploy creates one machine. For two: hibernaut scale count 2.",
  "deploy --local-only": "Leave it out: images are built on this machine.",
  "deploy --remote-only": "Leave it out: images are built on this machine.",
  "deploy --no-cache": "To build everything again: --no-build-cache.",
  "deploy --detach": "Leave it out: a deploy waits until the new version works.",
};

/** What to use instead of a command that does not exist, such as `scale vm`, or of an option, such as `launch --org`. */
export function elsewhere(words: readonly string[]): string | undefined {
  const key = words.join(" ");
  const list = [ELSEWHERE, OPTIONS_ELSEWHERE].find((one) => Object.hasOwn(one, key));
  return list?.[key];
}
