/** Opens what the API of a host in a cluster needs. Loaded only on such a host. */
import type { Duplex } from "node:stream";
import { type ClusterTemplates, type OpenAgreedOptions, openAgreed, PeerClient } from "@hibernaut/cluster";
import type { FetchImage, ImageStore } from "@hibernaut/images";
import type { Api, ApiCluster } from "../deps.ts";
import { acceptPlain } from "../tls.ts";
import { verifyToken } from "../tokens.ts";
import { fetchImage } from "./images.ts";

/** What it is opened with. */
export interface OpenSharedOptions extends OpenAgreedOptions {
  images: Pick<ImageStore, "get" | "ensure">;
  templates: ClusterTemplates;
}

export interface OpenedShared {
  /** For the API. */
  api: ApiCluster;
  /** Gets images from other hosts. */
  fetchImage: FetchImage;
  /** Begins to follow what the hosts share. Call it once the machines are known. */
  start(): void;
  /** Answers a connection of another host. */
  accept(api: Api, connection: Duplex, from: string): void;
  /** Tells the other hosts of a token that this host has made by itself. */
  publishToken(token: string): void;
  close(): void;
}

/** Opens it. */
export function openApiCluster(options: OpenSharedOptions): OpenedShared {
  const { cluster, store, images, templates } = options;
  const { view, peers } = cluster;
  const shared = openAgreed(options);
  const client = new PeerClient({ peers, view, service: "api" });
  const connections = new WeakMap<object, string>();
  return {
    api: { shared, view, client, connections, images, templates },
    fetchImage: fetchImage({ host: cluster.host, view, client }),
    start: () => shared.start(),
    accept(api, connection, from) {
      connections.set(connection, from);
      acceptPlain(api, connection);
    },
    publishToken(token) {
      const record = verifyToken(store.tokens, token);
      if (record !== undefined) shared.publishToken(record.id);
    },
    close() {
      client.close();
      shared.close();
    },
  };
}
