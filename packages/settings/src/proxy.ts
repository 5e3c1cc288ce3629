/** Settings of the proxy. */
import { join } from "node:path";
import {
  CONNECT_TIMEOUT_MS,
  HOLD_TIMEOUT_MS,
  LEAST_TUNNEL_STALL_MS,
  TUNNEL_STALL_MS,
} from "@hibernaut/domain/patience";
import { choice, duration, integer, list, listen, NETWORK, optionalListen, optionalPath, path, text } from "./forms.ts";
import { configFolder } from "./places.ts";

/** A hostname in lower case. */
const SUFFIX = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;

export const PROXY_SETTINGS = {
  proxyListen: listen("HIBERNAUT_PROXY_LISTEN", {
    default: { host: "127.0.0.1", port: 8080 },
    description:
      "Where [apps answer](proxy.md) over HTTP. The default is loopback: offer the proxy to a network when you mean to.",
  }),
  /** `outside`: in processes of their own, started with `hibernaut proxy`. */
  proxy: choice("HIBERNAUT_PROXY", ["inside", "outside"], {
    default: "inside",
    description:
      "`outside` runs the proxy in [separate processes](proxy.md#keep-serving-while-the-platform-restarts), and `serve` opens no port for apps.",
  }),
  proxySuffixes: list("HIBERNAUT_PROXY_SUFFIXES", {
    default: ["localhost"],
    item: SUFFIX,
    of: "hostnames",
    description:
      "Hostnames that end with one of these are `<app>.<suffix>`. `localhost` resolves to this host everywhere.",
  }),
  reservedHostnames: list("HIBERNAUT_RESERVED_HOSTNAMES", {
    default: [],
    item: SUFFIX,
    of: "hostnames",
    description:
      "Names under which the API and the dashboard are opened, and at which [no app answers](proxy.md#names-that-no-app-gets): browsers send the cookies of a name to all of its ports. In addition to `localhost`, the host of `HIBERNAUT_API_LISTEN`, the host's own name if that is not loopback, and the names at which someone signed in with a token for all apps.",
  }),
  proxyTlsListen: optionalListen("HIBERNAUT_PROXY_TLS_LISTEN", {
    description: "Where apps answer over [HTTPS](https.md). Without it, they do not.",
  }),
  /** `<hostname>.crt` and `<hostname>.key`; `default` for every other name. */
  proxyTlsFolder: path("HIBERNAUT_PROXY_TLS_FOLDER", {
    fallback: (environment) => join(configFolder(environment), "certificates"),
    defaultText: "`certificates` in the configuration directory",
    description:
      "The directory of [your own certificates](https.md#use-your-own-certificates). Those that the platform manages are in the data directory.",
  }),
  proxyHstsS: duration("HIBERNAUT_PROXY_HSTS", {
    unit: "s",
    default: 0,
    min: 0,
    max: 63_072_000,
    description:
      "For how long browsers that saw an app over TLS [use only HTTPS](proxy.md#serve-https) for its hostname, as `Strict-Transport-Security` tells them. 0: they are not told, because they cannot be told otherwise until the time is over.",
  }),
  proxyWakePage: optionalPath("HIBERNAUT_PROXY_WAKE_PAGE", {
    description:
      "An HTML file of up to 256 KB that browsers are shown [while an app cold starts](proxy.md#show-a-page-during-a-cold-start), in place of the page that comes with Hibernaut. Read when the proxy starts.",
  }),
  proxyTcpListen: text("HIBERNAUT_TCP_LISTEN", {
    default: "127.0.0.1",
    pattern: "^(off|[0-9a-fA-F.:]+)$",
    accepts: "an IP address, or off",
    description:
      "The address at which [TCP services](proxy.md#reach-a-tcp-service) take connections, each at its own port. The default is loopback. `off`: nowhere.",
  }),
  tcpPorts: text("HIBERNAUT_TCP_PORTS", {
    default: "1024-65535",
    pattern: String.raw`^\d{1,5}-\d{1,5}$`,
    accepts: "a range of ports such as 1024-65535",
    description:
      "The ports for [TCP services](proxy.md#reach-a-tcp-service) that a token which is limited to apps may take. The default leaves those that only root may open, as for SSH and mail, to the host. Tokens for all apps may take any port, except the platform's own and etcd's.",
  }),
  proxyTrusted: list("HIBERNAUT_PROXY_TRUSTED", {
    default: [],
    item: NETWORK,
    of: "addresses or networks such as 10.1.2.0/24",
    description:
      "Addresses and networks of [proxies in front of this one](proxy.md#run-behind-another-proxy). Only their `X-Forwarded-For` is trusted. Machines on a bridge never are, even within such a network.",
  }),
  proxyProtocolFrom: list("HIBERNAUT_PROXY_PROTOCOL_FROM", {
    default: [],
    item: NETWORK,
    of: "addresses or networks such as 10.1.2.0/24",
    description:
      "Addresses and networks of load balancers whose connections begin with a [PROXY protocol header](proxy.md#run-behind-a-balancer-for-tcp), version 1 or 2, at every port of the proxy. A connection from there without a header is refused; from anywhere else, machines on a bridge included, a header is not believed.",
  }),
  proxyHoldTimeoutMs: duration("HIBERNAUT_PROXY_HOLD_TIMEOUT", {
    scaled: true,
    formerly: "HIBERNAUT_PROXY_HOLD_TIMEOUT_MS",
    default: HOLD_TIMEOUT_MS,
    min: 100,
    max: 600_000,
    description: "How long a request waits for its machine. A cold start under emulation on a busy host takes less.",
  }),
  proxyMaxHeld: integer("HIBERNAUT_PROXY_MAX_HELD", {
    default: 10_000,
    min: 1,
    max: 1_000_000,
    description: "How many requests to one app may wait at once: each holds a connection and a few KB.",
  }),
  connectionsPerAddress: integer("HIBERNAUT_CONNECTIONS_PER_ADDRESS", {
    default: 0,
    min: 0,
    max: 1_000_000,
    description:
      "How many [connections](proxy.md#connections) one client may have at all ports of a process together: an IPv4 address, a /64 of IPv6, or all machines of an app. 0: as many as it leaves to others, which is half of all while it is alone.",
  }),
  connectionRatePerAddress: integer("HIBERNAUT_CONNECTION_RATE_PER_ADDRESS", {
    default: 200,
    min: 0,
    max: 100_000,
    description:
      "How many [connections](proxy.md#connections) one client, an IPv4 address or a /64 of IPv6, may open per second at all ports of this host together, and five times as many at once after a pause; the kernel drops what is over. Each costs the platform some 0.15 ms of a CPU, so one client takes at most about 3 %. Only on a host with a [bridge](network.md#network-modes). 0: no limit.",
  }),
  proxyConnectTimeoutMs: duration("HIBERNAUT_PROXY_CONNECT_TIMEOUT", {
    formerly: "HIBERNAUT_PROXY_CONNECT_TIMEOUT_MS",
    default: CONNECT_TIMEOUT_MS,
    min: 10,
    max: 600_000,
    description: "How long the port of a running machine may take to accept a connection.",
  }),
  proxyStallTimeoutMs: duration("HIBERNAUT_PROXY_STALL_TIMEOUT", {
    default: TUNNEL_STALL_MS,
    min: LEAST_TUNNEL_STALL_MS,
    orZero: true,
    max: 86_400_000,
    description:
      "How long a client or an app may take none of the bytes that wait for it on a [TCP connection](proxy.md#reach-a-tcp-service) or WebSocket before the proxy closes it. A connection on which nothing waits may be silent for as long as it likes. A slow reader is seen to read only now and then: up to some 1.5 MB must be read in this time. The default is about as long as Linux tries to reach a peer that is gone. 0: without limit.",
  }),
  drainTimeoutMs: duration("HIBERNAUT_DRAIN_TIMEOUT", {
    formerly: "HIBERNAUT_DRAIN_TIMEOUT_MS",
    default: 5_000,
    min: 0,
    max: 600_000,
    description:
      "How long a machine that is being stopped or updated may take to finish its open requests; 0 cuts them off.",
  }),
  idleCheckIntervalS: duration("HIBERNAUT_IDLE_CHECK_INTERVAL", {
    unit: "s",
    default: 60,
    min: 1,
    max: 3600,
    description:
      "How often all machines are checked for [idleness](proxy.md#when-machines-sleep). A machine whose idle time is over in between is checked at that moment.",
  }),
  proxyMetricsListen: optionalListen("HIBERNAUT_PROXY_METRICS_LISTEN", {
    description:
      "Where `hibernaut proxy` offers its metrics, at any path and without a token. Without it, nowhere. Machines on a [bridge](network.md) cannot reach this port.",
  }),
};
