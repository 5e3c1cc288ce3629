/** Shapes of `/v1/apps`. */
import { MOST_ALIASES, MOST_WAKES } from "@hibernaut/domain/app-network";
import { type Static, Type } from "typebox";
import { closed, time } from "../schemas.ts";

export const AppReply = Type.Object(
  {
    name: Type.String(),
    created_at: time,
    machine_count: Type.Integer(),
    urls: Type.Array(Type.String(), {
      description:
        "Where the proxy answers for the app, as far as the platform knows for certain. Requests there get 404 while no machine of the app has a service.",
    }),
    status_page: Type.Boolean({ description: "Whether anyone may see at `/status/<app>` how the app is." }),
    network: Type.Optional(
      Type.Object(
        {
          name: Type.String({ description: "Apps with the same one share it." }),
          address: Type.String({
            description:
              "The app's own IPv4 address in it. Machines of the network reach the ports of its services there, and a connection wakes the app.",
          }),
          aliases: Type.Array(Type.String(), { description: "What it is called there besides its own name." }),
          wakes: Type.Array(Type.String(), {
            description:
              "Apps of the network that wake whenever a request wakes it. Only those that the token reaches.",
          }),
        },
        {
          ...closed,
          title: "AppNetwork",
          description: "The network that the app shares with others. Absent if it is in none.",
        },
      ),
    ),
    preview: Type.Optional(
      Type.Object(
        {
          of: Type.String({ description: "The app that it is a preview of." }),
          name: Type.String({ description: "What it is called among the previews of that app." }),
          expires_at: { ...time, description: "When it is destroyed, unless it is renewed." },
          expired: Type.Boolean({ description: "Its time is over: it is being destroyed." }),
        },
        { ...closed, title: "Preview", description: "Absent for an app that is not a preview." },
      ),
    ),
    sandbox_port_url: Type.Optional(
      Type.String({
        description:
          "Where ports of its sandboxes answer: a URL with `{port}` and `{id}` to be replaced. Absent while sandboxes are off.",
      }),
    ),
    closed_ports: Type.Optional(
      Type.Array(Type.Object({ port: Type.Integer(), reason: Type.String() }, closed), {
        description: "Ports of its TCP services that the proxy cannot open on this host. Absent if there are none.",
      }),
    ),
  },
  { ...closed, title: "App", description: "A name that owns machines and hostnames." },
);

export const AppList = Type.Object({ apps: Type.Array(AppReply), total_apps: Type.Integer() }, closed);

export const AppParams = Type.Object({ app_name: Type.String() }, closed);

/** What an app is called. */
export const aliases = Type.Optional(
  Type.Array(Type.String({ examples: ["db"] }), {
    description: `What the app is called in its network besides its own name, up to ${MOST_ALIASES}.`,
  }),
);

/** Whom an app wakes. */
export const wakes = Type.Optional(
  Type.Array(Type.String({ examples: ["shop-db"] }), {
    description: `Other apps of its network that a request which wakes it wakes as well, up to ${MOST_WAKES}.`,
  }),
);

/** Creates an app. One of the two names is required. */
export const CreateAppBody = Type.Object(
  {
    app_name: Type.Optional(Type.String({ description: "Required, unless `name` is given." })),
    name: Type.Optional(Type.String({ description: "The same as `app_name`." })),
    network: Type.Optional(
      Type.String({
        description:
          "The network that its machines share with those of the apps that name the same one. It is never changed. Default: none.",
        examples: ["shop"],
      }),
    ),
    aliases,
    wakes,
  },
  { ...closed, title: "CreateAppRequest" },
);

/** Changes an app. What is absent stays. */
export const UpdateAppBody = Type.Object(
  {
    status_page: Type.Optional(
      Type.Boolean({ description: "Whether anyone may see at `/status/<app>` how the app is." }),
    ),
    aliases,
    wakes,
  },
  { ...closed, title: "UpdateAppRequest" },
);

export type AppWire = Static<typeof AppReply>;
