/**
 * What is done with flyctl, in its order. `{name}` in a command is what an earlier step found by a group of that name.
 *
 * @typedef {{run?: string[], visits?: string, says: RegExp, holds?: string, code?: number}} Step `says` has to be in what it says, and
 * what an earlier step found by the name `holds`; `code` is how it ends. `visits` asks the proxy for an app.
 */

const IN = ["-a", "shop"];
const MACHINE = /Machine ID: (?<ada>\w{14})/;

/** @type {Step[]} */
export const STORY = [
  { run: ["apps", "create", "shop", "--org", "personal"], says: /New app created: shop/ },
  { run: ["apps", "list"], says: /shop .*personal/ },
  { run: ["platform", "regions"], says: /local/ },
  { run: ["volumes", "create", "data", ...IN, "--size", "2", "--region", "local", "--yes"], says: /Size GB: 2/ },
  {
    run: [
      ...["machine", "run", "{image}", ...IN, "--name", "ada", "--vm-memory", "256", "--volume", "data:/data"],
      ...["--port", "443:8080/tcp:http:tls", "--autostop=suspend", "--metadata", "user=1", "--env", "A=1"],
    ],
    says: new RegExp(`${MACHINE.source}[^]*Machine started`),
  },
  { run: ["machine", "list", ...IN], says: /ada .*started .*shared-cpu-1x:256MB/ },
  { run: ["machine", "list", ...IN, "--json"], says: /"metadata": \{\s*"user": "1"/ },
  { run: ["machine", "status", "{ada}", ...IN], says: /State: started[^]*Volume +│ vol_[^]*start .*flyd/ },
  { run: ["machine", "status", "{ada}"], says: /State: started/ },
  { run: ["machine", "status", "{ada}", ...IN, "--display-config"], says: /"autostop": "suspend"/ },
  { run: ["machine", "exec", "{ada}", "cat /proc/1/comm", ...IN], says: /\S/ },
  { run: ["machine", "exec", "{ada}", "/usr/bin/ls /nowhere", ...IN], says: /Exit code: 2[^]*nowhere/ },
  { visits: "shop", says: /"nonce": ?"(?<nonce>[^"]+)"/ },
  { run: ["machine", "suspend", "{ada}", ...IN, "--wait-timeout", "2m"], says: /has been suspended/ },
  { run: ["machine", "status", "{ada}", ...IN], says: /State: suspended/ },
  // A request wakes it, with its memory.
  { visits: "shop", says: /"nonce"/, holds: "nonce" },
  { run: ["machine", "status", "{ada}", ...IN], says: /State: started/ },
  { run: ["machine", "suspend", "{ada}", ...IN, "--wait-timeout", "2m"], says: /has been suspended/ },
  { run: ["machine", "start", "{ada}", ...IN], says: /has been started/ },
  {
    run: ["machine", "wait", "{ada}", ...IN, "--state", "started", "--wait-timeout", "2m"],
    says: /reached state "started"/,
  },
  { run: ["machine", "cordon", "{ada}", ...IN], says: /done/ },
  { run: ["machine", "uncordon", "{ada}", ...IN], says: /done/ },
  { run: ["machine", "leases", "view", "{ada}", ...IN], says: /No leases found/ },
  { run: ["machine", "restart", "{ada}", ...IN], says: /restarted successfully/ },
  { run: ["machine", "update", "{ada}", ...IN, "--env", "B=2"], says: /\+\s+"B": "2"[^]*yes flag must be/, code: 1 },
  {
    run: ["machine", "update", "{ada}", ...IN, "--yes", "--env", "B=2", "--vm-memory", "512"],
    says: /updated successfully/,
  },
  { run: ["machine", "update", "{ada}", ...IN, "--yes", "--image", "{image}"], says: /updated successfully/ },
  { run: ["machine", "status", "{ada}", ...IN, "--display-config"], says: /"A": "1",\s*"B": "2"[^]*"memory_mb": 512/ },
  {
    run: ["machine", "clone", "{ada}", ...IN, "--name", "bob"],
    says: /Machine (?<bob>\w{14}) has been created[^]*success/,
  },
  { run: ["volumes", "list", ...IN], says: /2GB[^]*2GB/ },
  {
    run: ["machine", "stop", "{ada}", "{bob}", ...IN, "--timeout", "5", "--wait-timeout", "2m"],
    says: /stopped[^]*stopped/,
  },
  {
    run: ["machine", "update", "{bob}", ...IN, "--yes", "--skip-start", "--command", "sleep 60"],
    says: /updated success/,
  },
  { run: ["machine", "status", "{bob}", ...IN], says: /State: stopped/ },
  {
    run: ["machine", "create", "{image}", ...IN, "--name", "eve", "--vm-memory", "256"],
    says: /Machine ID: (?<eve>\w{14})/,
  },
  { run: ["machine", "start", "{ada}", "nobody", ...IN], says: /nobody was not found in app 'shop'/, code: 1 },
  { run: ["machine", "status", "00000000000000"], says: /Could not find Machine/, code: 1 },
  { run: ["machine", "list", "-a", "nobody"], says: /There is no app nobody/, code: 1 },
  { run: ["machine", "start", "{ada}", ...IN], says: /has been started/ },
  { run: ["machine", "destroy", "{ada}", ...IN], says: /use --force/, code: 1 },
  { run: ["machine", "wait", "{ada}", ...IN, "--state", "started", "--wait-timeout", "2m"], says: /reached state/ },
  { run: ["machine", "kill", "{ada}", ...IN], says: /kill signal has been sent/ },
  {
    run: ["machine", "destroy", "{ada}", "{bob}", "{eve}", ...IN, "--force"],
    says: /destroyed[^]*destroyed[^]*destroyed/,
  },
  // flyctl does not wait until they are gone.
  { run: ["machine", "list", ...IN], says: /No machines are available|destroying/ },
  { run: ["secrets", "set", "PIN=1", ...IN, "--stage"], says: /staged/ },
  { run: ["secrets", "list", ...IN], says: /PIN/ },
  { run: ["apps", "destroy", "shop", "--yes"], says: /Destroyed app shop/ },
];
