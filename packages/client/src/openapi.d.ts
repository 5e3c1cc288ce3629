/**
 * Generated from the platform's OpenAPI document by `npm run client-types`. Don't edit this file:
 * change the schemas in packages/api/src/routes instead.
 */
export interface paths {
  "/v1/health": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show whether the platform works, and what it is */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What the platform is. Only a platform that works answers with it. One that is `draining` neither starts nor creates machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Health"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List apps */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              apps: components["schemas"]["App"][];
              total_apps: number;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Create an app */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["CreateAppRequest"];
        };
      };
      responses: {
        /** @description A name that owns machines and hostnames. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["App"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show an app */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description A name that owns machines and hostnames. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["App"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    /** Delete an app; with `force`, also its machines and volumes */
    delete: {
      parameters: {
        query?: {
          /** @description Default: false. */
          force?: boolean;
        };
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    /** Change an app */
    patch: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["UpdateAppRequest"];
        };
      };
      responses: {
        /** @description A name that owns machines and hostnames. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["App"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    trace?: never;
  };
  "/v1/machines": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List the machines of all apps */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Machine"][];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List the machines of an app */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Machine"][];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Create a machine and start it */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["CreateMachineRequest"];
        };
      };
      responses: {
        /** @description A virtual machine that runs one app. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Machine"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show a machine */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description A virtual machine that runs one app. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Machine"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Update a machine */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      /** @description The complete new configuration. Without `config`, the machine moves to the current guest bundle and keeps its image and configuration: at its next cold start, if it has a snapshot. Nothing changes if it has that bundle. */
      requestBody: {
        content: {
          "application/json": components["schemas"]["UpdateMachineRequest"];
        };
      };
      responses: {
        /** @description A virtual machine that runs one app. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Machine"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /** Destroy a machine; a running one needs `force` */
    delete: {
      parameters: {
        query?: {
          /** @description Default: false. */
          force?: boolean;
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/events": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List a machine's events, newest first */
    get: {
      parameters: {
        query?: {
          /** @description Return at most this many. Default: 100. */
          limit?: number;
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["MachineEvent"][];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/start": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Resume or cold start a machine */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["StartRequest"];
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
              previous_state: components["schemas"]["MachineState"];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/suspend": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Suspend a machine to a snapshot */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/stop": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Stop a machine and discard its snapshot */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/restart": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Stop a machine and start it from scratch */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/cordon": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Give a machine no more requests, and neither wake it nor put it to sleep */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/uncordon": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Give a cordoned machine requests again */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/activity": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show what a machine is used for, and why it does not sleep */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What a machine is used for at the moment, and why it does not sleep. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Activity"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/wait": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Wait for a state */
    get: {
      parameters: {
        query?: {
          /** @description `running` (or `started`), `stopped`, `suspended`, `destroyed`, `failed`, `created`, `restarting`, or `settled` for any resting state. `healthy`: running, listening on the ports of its services, and all checks pass; `unhealthy`: running, but requests cannot reach it or a check failed. `prewarmed`: no prewarm is in progress, however it ended. Default: `running`. Repeat it, or separate values by commas. */
          state?: string | string[];
          /** @description Seconds. Default: 60. */
          timeout?: number;
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
              state: components["schemas"]["MachineState"];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/logs": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Read the logs of a machine */
    get: {
      parameters: {
        query?: {
          /** @description Return at most this many of the last lines. Default: 100, or 10000 with `since`. */
          limit?: number;
          /** @description Return lines from then on: a time (RFC 3339), or an age such as 30s, 10m, 2h, 1d. */
          since?: string;
          /** @description `stdout`, `stderr`, `hooks`, `platform`. Default: all. Repeat it, or separate values by commas. */
          stream?: string | string[];
          /** @description Continue with new lines as they come, until the machine is destroyed. Default: 0. */
          follow?: "1" | "true" | "0" | "false";
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description one entry per line, and empty lines to keep the connection open */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-ndjson": components["schemas"]["LogEntry"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/logs": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Read the logs of an app's machines, ordered by time */
    get: {
      parameters: {
        query?: {
          /** @description Return at most this many of the last lines. Default: 100, or 10000 with `since`. */
          limit?: number;
          /** @description Return lines from then on: a time (RFC 3339), or an age such as 30s, 10m, 2h, 1d. */
          since?: string;
          /** @description `stdout`, `stderr`, `hooks`, `platform`. Default: all. Repeat it, or separate values by commas. */
          stream?: string | string[];
          /** @description Continue with new lines as they come, until the machine is destroyed. Default: 0. */
          follow?: "1" | "true" | "0" | "false";
          /** @description Machines, by id, name, or the beginning of the id. Default: all, including those created while the request follows. Repeat it, or separate values by commas. */
          machine?: string | string[];
        };
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description one entry per line, and empty lines to keep the connection open */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-ndjson": components["schemas"]["LogEntry"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/stream": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Follow everything that changes, as server-sent events */
    get: {
      parameters: {
        query?: {
          /** @description Only events of this app. */
          app?: string;
          /** @description Only events of this machine, with `app`: its id, name, or the beginning of its id. */
          machine?: string;
          /** @description Only events of these types, such as `machine.suspended`, or groups of types, such as `machine`. Default: all. Repeat it, or separate values by commas. */
          type?: string | string[];
          /** @description Begin after the event with this sequence number, or in a cluster with this `position`; 0 begins with the oldest that is kept. `Last-Event-ID` does the same, and goes first. Default: begin with what comes. */
          since?: string;
          /** @description Begin with the last events, this many. */
          tail?: number;
          /** @description With 0, the reply ends after the newest event. Default: 1. */
          follow?: "1" | "true" | "0" | "false";
        };
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description server-sent events, each with the sequence number as its id, and comments to keep the connection open; an event `gap` says that events are no longer kept, and in a cluster an event `missing` which `hosts` cannot be heard at present */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "text/event-stream": components["schemas"]["StreamEvent"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/timeline": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show what machines did over time */
    get: {
      parameters: {
        query?: {
          /** @description The last hours, this many. Default: 24. */
          hours?: number;
          /** @description Only machines of this app. */
          app?: string;
        };
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What machines did over time, those that are not destroyed. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Timeline"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/wakes": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show how machines woke, hour by hour, with latencies by kind */
    get: {
      parameters: {
        query?: {
          /** @description The last hours, this many. Default: 24. */
          hours?: number;
          /** @description Only machines of this app. */
          app?: string;
        };
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description How machines woke, hour by hour. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Wakes"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/exec": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Run a command in a machine
     * @description Keeps the first 1048576 bytes of stdout and of stderr. Kills the command and its process group after the timeout. With `Upgrade: websocket`, the same path streams the output; see the documentation.
     */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["ExecRequest"];
        };
      };
      responses: {
        /** @description How a command ended, and what it printed. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["ExecResult"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/archive/stat": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show what is at a path in a machine */
    get: {
      parameters: {
        query: {
          /** @description An absolute path in the machine. */
          path: string;
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What is at a path in a machine. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["MachinePath"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/archive": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Copy a file or directory out of a machine
     * @description The reply breaks off if the copy fails after its beginning: an archive that has its end is whole.
     */
    get: {
      parameters: {
        query: {
          /** @description An absolute path in the machine. */
          path: string;
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description a tar archive whose entries begin with the last part of the path */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-tar": unknown;
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /**
     * Copy files into a machine
     * @description Unpacks the body, a tar archive, in the directory `path`, which must exist. Each file appears whole or not at all.
     */
    put: {
      parameters: {
        query: {
          /** @description An absolute path in the machine. */
          path: string;
          /** @description Whom the files belong to: the image's user, or whom the archive says. Default: image. */
          owner?: "image" | "archive";
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What was copied into a machine. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["UnpackedArchive"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/keepalive": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    /** Keep this machine awake while it is idle */
    put: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description Seconds from now. The setting HIBERNAUT_KEEPALIVE_MAX_TTL is the upper limit. */
            ttl: number;
            reason?: string;
          };
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
              keep_awake: {
                /** Format: date-time */
                until: string;
                reason: string;
              } | null;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    post?: never;
    /** End the keep-awake lease */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/wake": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    /** Wake this machine at a time, if it is suspended by then */
    put: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description The time, RFC 3339, at most a year away. */
            at?: string;
            /** @description The time from now instead: a number of seconds, or a text such as `1h30m`. */
            in?: number | string;
          };
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
              /** Format: date-time */
              wake_at: string;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    post?: never;
    /** Forget the planned wake */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/prepared": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Report that this machine is prepared for requests: a prewarm may end */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
              /** @description Whether the machine was started for its snapshot, and sleeps now. */
              prewarm: boolean;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/events": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Stream starts and suspends of this machine as server-sent events
     * @description `event: resume` or `cold` with `{"kind","slept_ms"}`, the last start first; `event: suspend` with `{"kind","id","deadline_ms"}` when `suspend_config` asks the app to get ready. The stream continues after a resume.
     */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description the events, until the connection ends */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "text/event-stream": unknown;
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/events/{event_id}/ready": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Report that this program is ready for the suspend */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          event_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/hostnames": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List an app's hostnames */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              hostnames: string[];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Add a hostname to an app */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            hostname: string;
          };
        };
      };
      responses: {
        /** @description Default Response */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              hostname: string;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/hostnames/{hostname}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /** Remove a hostname from an app */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          hostname: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/certificates": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List an app's certificates */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              certificates: components["schemas"]["Certificate"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Order a certificate, which is renewed from then on. Repeats a failed order at once */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      /** @description Which name to get a certificate for. */
      requestBody: {
        content: {
          "application/json": components["schemas"]["AddCertificateRequest"];
        };
      };
      responses: {
        /** @description A certificate that the platform gets and renews by itself. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Certificate"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/certificates/{hostname}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show a certificate */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          hostname: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description A certificate that the platform gets and renews by itself. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Certificate"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    /** Remove a certificate with its key */
    delete: {
      parameters: {
        query?: {
          /** @description Have the authority declare it invalid before its end, too. Default: false. */
          revoke?: boolean;
        };
        header?: never;
        path: {
          app_name: string;
          hostname: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/certificates/{hostname}/check": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Look in DNS and at port 80 what a certificate for the hostname needs */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          hostname: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              findings: components["schemas"]["CertificateFinding"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/audit": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Read who changed what: one JSON object per line, oldest first */
    get: {
      parameters: {
        query?: {
          /** @description Only what concerns this app. */
          app?: string;
          /** @description Only what this token did: its id or its name. */
          token?: string;
          /** @description From then on: a time (RFC 3339), or an age such as 10m or 7d. */
          since?: string;
          /** @description The last lines, this many. Default: 100. */
          limit?: number;
          follow?: "0" | "1" | "false" | "true";
        };
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description one entry per line, and empty lines to keep the connection open */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-ndjson": components["schemas"]["AuditEntry"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/quota": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show what an app may have, and what it has */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What an app may have, and what it has. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Quota"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /** Change what an app may have */
    put: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      /** @description Changes of an app's limits. */
      requestBody: {
        content: {
          "application/json": components["schemas"]["UpdateQuotaRequest"];
        };
      };
      responses: {
        /** @description What an app may have, and what it has. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Quota"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/secrets": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List an app's secrets, without their values */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              secrets: components["schemas"]["Secret"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Set secrets of an app, all or none, and discard its machines' snapshots */
    post: {
      parameters: {
        query?: {
          /** @description Change nothing and return what would happen. Default: false. */
          dry_run?: boolean;
        };
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description Values by names of environment variables. HIBERNAUT_* and FLY_* are reserved. */
            secrets: {
              [key: string]: string;
            };
          };
        };
      };
      responses: {
        /** @description What a change of secrets means to the app's machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["SecretsEffect"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/secrets/{secret_name}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /** Unset a secret of an app and discard its machines' snapshots */
    delete: {
      parameters: {
        query?: {
          /** @description Change nothing and return what would happen. Default: false. */
          dry_run?: boolean;
        };
        header?: never;
        path: {
          app_name: string;
          secret_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What a change of secrets means to the app's machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["SecretsEffect"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/releases": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List an app's releases, newest first */
    get: {
      parameters: {
        query?: {
          /** @description Return at most this many. Default: 100. */
          limit?: number;
        };
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              releases: components["schemas"]["Release"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Begin a release: resolve its image, without changing a machine */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["CreateReleaseRequest"];
        };
      };
      responses: {
        /** @description A deploy of an image to an app, and how it ended. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Release"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/releases/{version}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Record how a release ended, or, with `pending`, that it is still being deployed */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          version: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["UpdateReleaseRequest"];
        };
      };
      responses: {
        /** @description A deploy of an image to an app, and how it ended. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Release"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/releases/{version}/command": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Run the command of a release in a temporary machine and stream its log: one JSON object per line, the last one with `ok` */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          version: string;
        };
        cookie?: never;
      };
      /** @description The configuration of the temporary machine; the command is what its `init` says. The machine gets the image of the release and RELEASE_COMMAND=1, and no services, checks, mounts, schedule or restarts. */
      requestBody: {
        content: {
          "application/json": components["schemas"]["ReleaseCommandRequest"];
        };
      };
      responses: {
        /** @description one line per line */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-ndjson": components["schemas"]["LogEntry"] | components["schemas"]["ReleaseCommandEnd"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/volumes": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List an app's volumes */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Volume"][];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Create a volume, empty or from a snapshot */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["CreateVolumeRequest"];
        };
      };
      responses: {
        /** @description A disk that outlives machines. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Volume"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/volumes/{volume_id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show a volume */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`. */
          volume_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description A disk that outlives machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Volume"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /** Change how snapshots of a volume are taken and kept */
    put: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`. */
          volume_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["UpdateVolumeRequest"];
        };
      };
      responses: {
        /** @description A disk that outlives machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Volume"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    post?: never;
    /** Destroy a volume that belongs to no machine, with its snapshots */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`. */
          volume_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/volumes/{volume_id}/extend": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    /** Extend a volume, from its machine's next cold start on */
    put: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`. */
          volume_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description The new size in GB. */
            size_gb: number;
          };
        };
      };
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["ExtendedVolume"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/volumes/{volume_id}/snapshots": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List a volume's snapshots, newest first */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`. */
          volume_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["VolumeSnapshot"][];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Create a snapshot of a volume */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`. */
          volume_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description A volume as it was at one moment. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["VolumeSnapshot"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/volumes/{volume_id}/snapshots/{snapshot_id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /** Delete a snapshot of a volume */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The volume's id, its name if no other volume of the app has it, or the beginning of its id, with or without `vol_`. */
          volume_id: string;
          snapshot_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/images": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List images */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              images: components["schemas"]["Image"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    /** Delete the images that no machine uses, and the downloaded layers */
    delete: {
      parameters: {
        query: {
          /** @description Required: only images that no machine needs can be deleted. */
          unused: "true";
        };
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["PrunedImages"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/images/pull": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Import an image and stream the progress: one JSON object per line, the last one with `done` or `error` */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description Reference of the image. */
            ref: string;
          };
        };
      };
      responses: {
        /** @description one event per line */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-ndjson":
              | components["schemas"]["PullProgress"]
              | components["schemas"]["PulledImage"]
              | components["schemas"]["Error"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/images/uploads": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List the uploads that have not ended */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              uploads: components["schemas"]["OpenUpload"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Begin or continue the upload of an image: says which bytes the platform does not have */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description What the reference shows, such as `shop:latest`. The digest alone decides which image it is. */
            name: string;
            /** @description The image's manifest for linux/amd64, exactly as its digest is computed: an OCI image manifest or a Docker manifest of schema 2. */
            manifest: string;
          };
        };
      };
      responses: {
        /** @description An image that is being uploaded. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["ImageUpload"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/images/uploads/{digest}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /** Cancel an upload and delete its unfinished blobs */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description Digest of the image's manifest. */
          digest: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/registries": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List the logins for registries, without their passwords */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              registries: components["schemas"]["RegistryLogin"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/registries/{host}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show the login for a registry, without its password */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description The registry's host, as references of images name it. */
          host: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description A login for a registry, without its password. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["RegistryLogin"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /** Store a login for a registry, once the registry has accepted it */
    put: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description The registry's host, as references of images name it. */
          host: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            username: string;
            password: string;
          };
        };
      };
      responses: {
        /** @description A login for a registry, without its password. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["RegistryLogin"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    post?: never;
    /** Forget the login for a registry */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description The registry's host, as references of images name it. */
          host: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/tokens": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List tokens, without their secrets */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              tokens: components["schemas"]["Token"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Create a token; its secret is shown once */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            name: string;
            /** @description What it may do. Default: `admin`. */
            scopes?: components["schemas"]["Scope"][];
            /** @description The only apps that it reaches. Default: all, and the platform itself. */
            apps?: string[];
            /** @description Seconds for which it is valid. Default: forever. */
            expires_in?: number;
          };
        };
      };
      responses: {
        /** @description A token that was just created. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["NewToken"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/tokens/{token_id}/rotate": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Create a token in the place of another, which stays valid for a while */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          token_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description Seconds for which the old token stays valid. Default: 86400. */
            overlap?: number;
            /** @description Seconds for which the new token is valid. Default: as long as the old one was when it was made. */
            expires_in?: number;
          };
        };
      };
      responses: {
        /** @description Default Response */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              token: components["schemas"]["NewToken"];
              old: {
                id: string;
                /** Format: date-time */
                valid_until: string;
              };
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/tokens/{token_id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /** Revoke a token */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          token_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/webhooks": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List webhooks */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              webhooks: components["schemas"]["Webhook"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Create a webhook; its secret is shown once */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["CreateWebhookRequest"];
        };
      };
      responses: {
        /** @description A webhook that was just created, or whose secret was rotated. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["NewWebhook"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/webhooks/{webhook_id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show a webhook */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          webhook_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description A URL that is told of events, without its secret. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Webhook"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    /** Remove a webhook, with what waits */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          webhook_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    /** Change a webhook, disable it, or enable it again */
    patch: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          webhook_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["UpdateWebhookRequest"];
        };
      };
      responses: {
        /** @description A URL that is told of events, without its secret. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Webhook"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    trace?: never;
  };
  "/v1/webhooks/{webhook_id}/test": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Send a test message once, and say what came of it */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          webhook_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": Record<string, never>;
        };
      };
      responses: {
        /** @description How one attempt to send a test message ended. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["WebhookTest"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/webhooks/{webhook_id}/rotate": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Create a new secret; the old one signs, too, for a while */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          webhook_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description Seconds for which the old secret signs, too. Default: 86400. */
            overlap?: number;
          };
        };
      };
      responses: {
        /** @description A webhook that was just created, or whose secret was rotated. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["NewWebhook"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/webhooks/{webhook_id}/deliveries": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List what is on its way to a webhook, and what arrived lately, newest first */
    get: {
      parameters: {
        query?: {
          /** @description Return at most this many. Default: 50. */
          limit?: number;
        };
        header?: never;
        path: {
          webhook_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              deliveries: components["schemas"]["WebhookDelivery"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/session": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show who is signed in */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Whose rights a browser, or a request, has. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Session"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Sign in from a browser: exchange a token for a cookie */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["StartSessionRequest"];
        };
      };
      responses: {
        /** @description Whose rights a browser, or a request, has. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Session"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /** Sign out: end the session */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/usage": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show what apps used, by app, machine or day */
    get: {
      parameters: {
        query?: {
          /** @description Usage from the day (UTC) of this moment on, up to 366 days. Default: 30 days before `to`. A time (RFC 3339), a date, or an age such as 12h or 30d. */
          from?: string;
          /** @description Usage up to the end of the day (UTC) before this moment, or that it is in. Default: now. A time (RFC 3339), a date, or an age such as 12h or 30d. */
          to?: string;
          group_by?: "app" | "machine" | "day";
          /** @description Only this app, which may have been destroyed. Default: all. */
          app?: string;
        };
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Usage of whole days, of which today is counted up to now. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["UsageReport"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/usage": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show what a machine used, by day; a destroyed one too, by its whole id */
    get: {
      parameters: {
        query?: {
          /** @description Usage from the day (UTC) of this moment on, up to 366 days. Default: 30 days before `to`. A time (RFC 3339), a date, or an age such as 12h or 30d. */
          from?: string;
          /** @description Usage up to the end of the day (UTC) before this moment, or that it is in. Default: now. A time (RFC 3339), a date, or an age such as 12h or 30d. */
          to?: string;
        };
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Usage of whole days, of which today is counted up to now. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["UsageReport"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/platform/regions": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** List regions */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              regions: components["schemas"]["Region"][];
              nearest: string;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/platform/host": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show what the platform runs on, and what of it is taken */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description What the platform runs on, and what of it is taken. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Host"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/platform/doctor": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Check the host, as `hibernaut doctor` does there */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              findings: components["schemas"]["Finding"][];
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/platform/drain": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show the drain and how far it has come */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description While there is a drain, the platform neither starts nor creates machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Drain"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /** Stop starting machines, and suspend those that run */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["DrainRequest"];
        };
      };
      responses: {
        /** @description While there is a drain, the platform neither starts nor creates machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Drain"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /** End the drain, and start the machines that it suspended */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description While there is a drain, the platform neither starts nor creates machines. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Drain"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/apps/{app_name}/machines/{machine_id}/move": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Move a machine to another host of the cluster, and stream the progress: one JSON object per line, the last one with the step `done`, or `error` */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          app_name: string;
          /** @description The machine's id, its name, or the beginning of its id (at least 3 characters). */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description The host to move to. Default: the one with the most room. */
            host?: string;
            /** @description Move the machine without its memory: it is stopped, keeps its files, and starts from scratch there. Default: false. */
            cold?: boolean;
            /** @description Machines take their volumes along, with the snapshots of those. Default: false; a machine with a volume is not moved. */
            with_volumes?: boolean;
          };
        };
      };
      responses: {
        /** @description one event per line */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-ndjson": components["schemas"]["MoveProgress"] | components["schemas"]["Error"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/cluster/hosts/{host}/evacuate": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Give the machines of a lost host to other hosts, which start them from scratch */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description The name of a host of the cluster. */
          host: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /**
             * @description Required: you know that the host's machines do not run any more, and what they had there is given up.
             * @enum {boolean}
             */
            dead: true;
          };
        };
      };
      responses: {
        /** @description What became of the machines of a lost host. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Evacuation"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/cluster/hosts/{host}/drain": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Move all machines off a host, which takes no new ones from then on, and stream the progress: one JSON object per line, the last one with `done` or `error` */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description The name of a host of the cluster. */
          host: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": {
            /** @description Machines take their volumes along, with the snapshots of those. Default: false; a machine with a volume is not moved. */
            with_volumes?: boolean;
          };
        };
      };
      responses: {
        /** @description one event per line */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-ndjson":
              | components["schemas"]["HostDrainProgress"]
              | components["schemas"]["DrainedHost"]
              | components["schemas"]["Error"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    /** Let a drained host take machines again */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description The name of a host of the cluster. */
          host: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/cluster": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show the hosts of the cluster */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description The cluster that this host belongs to. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Cluster"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/cluster/tokens": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Create a token with which a host joins the cluster */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/json": components["schemas"]["JoinTokenRequest"];
        };
      };
      responses: {
        /** @description A token with which one host can join the cluster. */
        201: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["JoinToken"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/cluster/disputed/{machine_id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /** Give up the disputed copy of a machine that this host keeps, because another host has the copy to continue with */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          /** @description The machine's whole id. */
          machine_id: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/cluster/hosts/{host}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /** Remove a host that is gone for good from the cluster */
    delete: {
      parameters: {
        query?: never;
        header?: never;
        path: {
          host: string;
        };
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description Default Response */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": {
              /** @enum {boolean} */
              ok: true;
            };
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/platform/backup": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Show how far the latest backup came */
    get: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description How far the latest backup since the platform started came. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Backup"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    put?: never;
    /**
     * Back up the platform
     * @description Holds all secrets. The reply breaks off if the backup fails after its beginning, and `GET` says why: an archive that ends with a `backup.sha256` that fits is whole.
     */
    post: {
      parameters: {
        query?: never;
        header?: never;
        path?: never;
        cookie?: never;
      };
      requestBody?: never;
      responses: {
        /** @description a tar archive of a data directory */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/x-tar": unknown;
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/v1/images/blobs/{digest}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /** Append bytes to a blob of an upload */
    patch: {
      parameters: {
        query: {
          /** @description How many bytes of the blob the platform has before these. */
          offset: number;
        };
        header?: never;
        path: {
          /** @description Digest of the blob. */
          digest: string;
        };
        cookie?: never;
      };
      requestBody: {
        content: {
          "application/octet-stream": unknown;
        };
      };
      responses: {
        /** @description The configuration of an image, or one of its layers. */
        200: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["UploadBlob"];
          };
        };
        /** @description Default Response */
        default: {
          headers: {
            [name: string]: unknown;
          };
          content: {
            "application/json": components["schemas"]["Error"];
          };
        };
      };
    };
    trace?: never;
  };
}
export type webhooks = Record<string, never>;
export interface components {
  schemas: {
    /** @description What a machine is used for at the moment, and why it does not sleep. */
    Activity: {
      state: components["schemas"]["MachineState"];
      /** @description Why it does not sleep. Null unless it is running. */
      awake: {
        /** @enum {string} */
        reason:
          | "no_service"
          | "autostop_off"
          | "cordoned"
          | "open_requests"
          | "commands"
          | "keep_awake"
          | "min_machines_running"
          | "busy_siblings"
          | "recently_used"
          | "due";
        /** @description The reason as a sentence. */
        message: string;
        /** @description In how many milliseconds it sleeps if nobody uses it. Null if that does not depend on time alone. */
        sleeps_in_ms: number | null;
        /** @description Requests that are open at the proxies, or connections if the service counts those. */
        open_requests: number;
        /** @description Commands that run in the machine. */
        running_commands: number;
        /** @description For how many milliseconds no request has been open. */
        idle_ms: number;
      } | null;
      /** @description What its QEMU process takes of the host, also that of a suspended machine that is kept warm. Null without one. */
      process: {
        /** @description CPU time since its start, in milliseconds: the guest's, and its own. */
        cpu_ms: number;
        /** @description Memory of it that is in the host's RAM. */
        resident_bytes: number;
      } | null;
    };
    /** @description Which name to get a certificate for. */
    AddCertificateRequest: {
      hostname: string;
      /** @description Agree to the authority's terms of service. Needed once. Default: false. */
      agree_to_terms?: boolean;
    };
    /** @description A name that owns machines and hostnames. */
    App: {
      name: string;
      /** Format: date-time */
      created_at: string;
      machine_count: number;
      /** @description Where the proxy answers for the app, as far as the platform knows for certain. Requests there get 404 while no machine of the app has a service. */
      urls: string[];
      /** @description Whether anyone may see at `/status/<app>` how the app is. */
      status_page: boolean;
      /** @description Ports of its TCP services that the proxy cannot open on this host. Absent if there are none. */
      closed_ports?: {
        port: number;
        reason: string;
      }[];
    };
    /** @description A line of the audit log. */
    AuditEntry: {
      /** Format: date-time */
      at: string;
      /**
       * @description Before the change, after it, or instead of it, because the token may not do this.
       * @enum {string}
       */
      phase: "begin" | "end" | "refused";
      /** @description The same in both lines of a request. */
      request_id: string;
      token: {
        id: string;
        name: string;
      };
      /**
       * @description The request came from a browser, with a session of the token.
       * @enum {boolean}
       */
      session?: true;
      /** @description The client's address. */
      from: string;
      method: string;
      /** @description The pattern of the path. */
      route: string;
      app: string | null;
      /** @description What the request named. */
      target: {
        [key: string]: unknown;
      };
      /** @description Null in a `begin`. */
      status: number | null;
    };
    /** @description How far the latest backup since the platform started came. */
    Backup: {
      /** @enum {string} */
      state: "none" | "running" | "complete" | "failed";
      started_at: string | null;
      ended_at: string | null;
      /** @description Machines that were copied by now. */
      machines_done: number;
      /** @description Machines that there are. */
      machines: number;
      /** @description Bytes that were sent. */
      bytes: number;
      /** @description The longest that a running machine was paused for its copy. */
      longest_pause_ms: number;
      /** @description Machines that cold start when the backup is restored, although they were running. */
      without_memory: {
        machine_id: string;
        app_name: string;
        reason: string;
      }[];
      /** @description Why the backup is `failed`. */
      error: {
        code: string;
        message: string;
      } | null;
    };
    /** @description A certificate that the platform gets and renews by itself. */
    Certificate: {
      /** @description A hostname, or `*.` and a hostname. */
      hostname: string;
      /** @enum {string} */
      status: "ordering" | "valid" | "overdue" | "failed" | "expired" | "unused";
      /** @enum {string} */
      challenge: "http-01" | "tls-alpn-01" | "dns-01";
      issuer: string | null;
      not_before: string | null;
      not_after: string | null;
      /** @description When its renewal is due. */
      renew_at: string | null;
      failure: {
        reason: string;
        /** @description How many orders have failed in a row. */
        attempts: number;
        /** Format: date-time */
        at: string;
        /**
         * Format: date-time
         * @description When the next order is due.
         */
        next_at: string;
      } | null;
    };
    /** @description Something that a certificate needs, and whether it is there. */
    CertificateFinding: {
      /** @enum {string} */
      what: "authority" | "dns" | "caa" | "port_80" | "port_443" | "dns_hook" | "tls";
      /** @enum {string} */
      status: "ok" | "missing" | "unknown";
      found: string;
      /** @description DNS records to add, as lines of a zone file. */
      records: string[];
    };
    CheckConfig: {
      type: "tcp" | "http";
      /** @description Default: `internal_port` of the first service. */
      port?: number;
      /** @description Time between two checks, from 100ms to 1h. Default: 15s. A number of seconds, or a text such as "15s". */
      interval?: number | string;
      /** @description Time limit of one check, from 100ms to 1h. Default: 5s. A number of seconds, or a text such as "15s". */
      timeout?: number | string;
      /** @description Time after a start in which failures don't count, up to 1h. Default: 10s. A number of seconds, or a text such as "15s". */
      grace_period?: number | string;
      /** @description For `http`. Default: GET. */
      method?: string;
      /** @description For `http`. Default: /. */
      path?: string;
      headers?: {
        name: string;
        values: string[];
      }[];
    };
    /** @description What one check of a machine last found. `warning`: it hasn't passed yet, within its grace period. */
    CheckResult: {
      name: string;
      /** @enum {string} */
      status: "passing" | "warning" | "critical";
      /** @description What the check found, for people. */
      output: string;
      /** Format: date-time */
      updated_at: string;
    };
    /** @description The cluster that this host belongs to. */
    Cluster: {
      id: string;
      region: string;
      /** @description The host that answers. */
      host: string;
      /** @enum {string} */
      lease: "live" | "grace" | "lost";
      /** @description Where the hosts agree. */
      directory: string;
      /** @description Seconds since this host last heard of the directory; 0 while it is connected. */
      directory_age_s: number;
      /** Format: date-time */
      certificate_expires_at: string;
      hosts: components["schemas"]["ClusterHost"][];
      disputed: components["schemas"]["DisputedMachine"][];
    };
    /** @description A host of the cluster. */
    ClusterHost: {
      name: string;
      /** @enum {string} */
      state: "up" | "away";
      /** @description Where other hosts reach it. Null while it is away. */
      peer: string | null;
      /** @description Its version of Hibernaut. Null while it is away. */
      version: string | null;
      /** @description How many machines it owns. */
      machines: number;
      /** @description Its memory in MB, and how much of it programs can still get. Null while it is away. */
      memory_mb: {
        total: number;
        free: number;
      } | null;
      /** @description Whether it takes no new machines. */
      draining: boolean;
      /** Format: date-time */
      joined_at: string;
      /** @description When its platform was started. Null while it is away. */
      started_at: string | null;
    };
    /** @description Cost in the currency of the report, not rounded. */
    Cost: {
      /** @description CPU of running machines. */
      cpu: number;
      /** @description Memory of running machines. */
      memory: number;
      /** @description Writable layers and volumes. */
      storage: number;
      /** @description All of these. */
      total: number;
      /** @description What the total would be if the machines had run as long as they existed. */
      if_always_running: number;
      /** @description The difference between the two. */
      saved_by_sleeping: number;
    };
    /** @description How an app ended by itself, and what follows. */
    Crash: {
      /** Format: date-time */
      at: string;
      /** @description How the app ended, for example `the app exited with code 1`. */
      reason: string;
      /** @description Null when the virtual machine vanished. */
      exit_code: number | null;
      /** @description Whether the app ended before it listened on its ports. */
      at_start: boolean;
      /** @description Number of the start that follows, counted from 1. */
      attempt: number;
      /** @description `max_retries` of the restart policy. */
      max_attempts: number;
      /** @description When that start is due. Null when the restart policy allows none. */
      retry_at: string | null;
    };
    CreateAppRequest: {
      /** @description Required, unless `name` is given. */
      app_name?: string;
      /** @description The same as `app_name`. */
      name?: string;
    };
    CreateMachineRequest: {
      /** @description Default: a generated name. */
      name?: string;
      /** @description The platform's only region. */
      region?: string;
      /** @description In a cluster, the host to create the machine on. Default: one with room, where the app has the fewest machines. */
      host?: string;
      config: components["schemas"]["MachineConfig"];
      /** @description Leave the machine in `created` instead of starting it. Default: false. */
      skip_launch?: boolean;
      /** @description Create the machine cordoned: it gets no requests until it is uncordoned. Default: false. */
      skip_service_registration?: boolean;
    };
    CreateReleaseRequest: {
      /** @description Reference of the image to deploy. */
      image: string;
      description?: string;
    };
    CreateVolumeRequest: {
      /** @description 1 to 30 characters of a-z, 0-9 and _. */
      name: string;
      /** @description Size in GB. Default: that of the snapshot, otherwise 1. */
      size_gb?: number;
      /** @description The platform's only region. */
      region?: string;
      /** @description In a cluster, the host to create the volume on. Default: one that is chosen. */
      host?: string;
      /** @description Start with the content of this snapshot. Default: empty. */
      snapshot_id?: string;
      /** @description Days that the volume's snapshots are kept. Default: 5. */
      snapshot_retention?: number;
      /** @description Take snapshots by itself. Default: as the setting HIBERNAUT_SCHEDULED_SNAPSHOTS says. */
      auto_backup_enabled?: boolean;
    };
    CreateWebhookRequest: {
      /** @description Where events are sent, over https. */
      url: string;
      /** @description Types of events such as `machine.suspended`, or groups such as `machine`. Default: all. */
      events?: string[];
      /** @description The only apps whose events it gets. Default: all, and the platform's. */
      apps?: string[] | null;
      /** @description For people. */
      description?: string;
    };
    /** @enum {string} */
    DeliveryState: "pending" | "delivered" | "skipped";
    /** @description A machine that is stored on the host that answers, and that the directory does not give to it. */
    DisputedMachine: {
      machine_id: string;
      /** @description Why, and what to do. */
      reason: string;
    };
    /** @description While there is a drain, the platform neither starts nor creates machines. */
    Drain: {
      /** @enum {string} */
      state: "none" | "draining" | "drained";
      /** @description Whether machines are suspended. */
      suspend: boolean;
      started_at: string | null;
      /** @description When machines that are not asleep are left as they are. */
      deadline: string | null;
      /** @description Since when nothing is left to do. Null until then, and always without `suspend`. */
      completed_at: string | null;
      /** @description The machines that are suspended, or left. */
      machines: components["schemas"]["DrainedMachine"][];
    };
    DrainRequest: {
      /** @description Suspend all machines that can be suspended. Default: false. */
      suspend?: boolean;
      /** @description Seconds that this may take, with `suspend`. Default: 90. */
      timeout?: number;
    };
    /** @description A host whose machines have moved. */
    DrainedHost: {
      /** @enum {boolean} */
      done: true;
      /** @description How many machines moved. */
      moved: number;
      stayed: {
        machine_id: string;
        app_name: string;
        /** @description The machine's name. */
        name: string;
        reason: string;
      }[];
    };
    /** @description How far a drain has come with a machine. */
    DrainedMachine: {
      machine_id: string;
      app_name: string;
      name: string;
      /** @enum {string} */
      result: "waiting" | "suspending" | "suspended" | "left";
      /** @description Why it is `left`: it keeps running, and loses its memory when the host goes down. */
      reason: string | null;
    };
    Error: {
      /** @enum {string} */
      error:
        | "invalid_argument"
        | "unauthenticated"
        | "permission_denied"
        | "not_found"
        | "deadline_exceeded"
        | "already_exists"
        | "aborted"
        | "moved"
        | "failed_precondition"
        | "payload_too_large"
        | "unsupported_media_type"
        | "upgrade_required"
        | "resource_exhausted"
        | "internal"
        | "draining"
        | "host_full"
        | "host_unreachable"
        | "unavailable";
      /** @description For people: what happened, why, and what to do next. */
      message: string;
      /** @description The same, for programs. */
      details: {
        [key: string]: unknown;
      };
      /** @description The platform's log mentions the request under this id. */
      request_id: string;
    };
    /** @description What became of the machines of a lost host. */
    Evacuation: {
      machines: {
        machine_id: string;
        app_name: string;
        /** @description The machine's name. */
        name: string;
        /** @description Its new host. Absent for a machine that was left behind. */
        host?: string;
        /** @description Why it was left behind. */
        reason?: string;
      }[];
    };
    ExecRequest: {
      /** @description The program, looked up in PATH, and its arguments. */
      command: string[];
      /** @description The command's entire input. Default: none. */
      stdin?: string;
      /** @description Seconds of the machine's own time, which stops while the machine is suspended. Default: 60. */
      timeout?: number;
      /** @description Environment variables, in addition to the app's. */
      env?: {
        [key: string]: string;
      };
      /** @description `user[:group]`. Default: the image's. */
      user?: string;
      /** @description Working directory. Default: the image's. */
      workdir?: string;
    };
    /** @description How a command ended, and what it printed. */
    ExecResult: {
      /** @description 128 plus the number of the signal that ended the command. 126 or 127 when it could not be started. */
      exit_code: number;
      /** @description Number of the signal that ended the command, or 0. */
      exit_signal: number;
      /** @description The first MiB of the output. */
      stdout: string;
      /** @description The first MiB of the error output. */
      stderr: string;
      /** @description Whether the command was killed because its time was up. */
      timed_out: boolean;
      /** @description Whether there was more output than is returned. */
      truncated: boolean;
    };
    ExtendedVolume: {
      volume: components["schemas"]["Volume"];
      /** @description Whether the volume's machine has to be restarted before it sees the new size. */
      needs_restart: boolean;
    };
    FileConfig: {
      /** @description Absolute path of the file in the machine. */
      guest_path: string;
      /** @description The file's content, in base64. Or send `secret_name`. */
      raw_value?: string;
      /** @description Name of the app's secret whose value is the file's content, in base64. */
      secret_name?: string;
      /** @description The file's permissions as a number, such as 493 for 0755. Default: 0644, or 0600 for a secret. */
      mode?: number;
    };
    /** @description The outcome of one check of the host. */
    Finding: {
      /** @enum {string} */
      level: "ok" | "warning" | "error";
      /** @description What was checked. */
      name: string;
      /** @description What was found. */
      message: string;
      /** @description A command that repairs it. Null if there is none, or nothing to repair. */
      advice: string | null;
    };
    /** @description What the platform is. Only a platform that works answers with it. One that is `draining` neither starts nor creates machines. */
    Health: {
      /** @enum {string} */
      status: "ok" | "draining";
      /** @description Version of Hibernaut. */
      version: string;
      region: string;
      hypervisor: string;
      hypervisor_version: string;
      /** @description `kvm`, or `tcg` for software emulation. */
      accelerator: string;
      /** @description Why the platform uses this accelerator. */
      accelerator_reason: string;
      /** @description Where the proxy listens. Null when proxies run as processes of their own. */
      proxy_url: string | null;
      /** @description Version of the guest bundle that new machines boot from. */
      guest_bundle: string;
      /** @description This host's place in its cluster. Absent on a host alone. Unless the lease is `live`, machines may not start here. */
      cluster?: {
        /** @description The name of this host. */
        host: string;
        /** @enum {string} */
        lease: "live" | "grace" | "lost";
        /** @description Seconds since this host last heard of etcd; 0 while it is connected. */
        directory_age_s: number;
        /** @description How many machines are stored here and do not start, because etcd gives them to nobody or to another host; `GET /v1/cluster` says why. Absent without any. */
        disputed_machines?: number;
      };
      /** @description How machines are connected. */
      network: {
        /** @description `bridge`, or `user` for QEMU's user-mode network. */
        mode: string;
        /** @description Why the platform uses this mode. */
        reason: string;
      };
    };
    /** @description What the platform runs on, and what of it is taken. */
    Host: {
      memory: {
        /** @description Bytes. */
        total_bytes: number;
        /** @description What programs can still get, where the platform is confined to less than the host: of that. Null if the kernel does not say. */
        available_bytes: number | null;
      };
      /** @description The file system of the data directory. */
      disk: {
        /** @description Bytes. */
        total_bytes: number;
        /** @description Bytes. */
        free_bytes: number;
      };
      /** @description The virtual machines that are kept in memory, paused: what they may take, and take. */
      warm: {
        /** @description Bytes. */
        budget_bytes: number;
        /** @description Bytes. */
        used_bytes: number;
        machines: number;
      };
      cpus: {
        count: number;
        /** @description The load average over 1, 5 and 15 minutes. */
        load: number[];
      };
      accelerator: {
        /** @description `kvm`, or `tcg` for software emulation. */
        name: string;
        reason: string;
      };
      versions: {
        platform: string;
        qemu: string;
        node: string;
        /** @description The host's. */
        kernel: string;
        /** @description What new machines boot from. */
        guest_bundle: string;
      };
      /** @description Since the platform started. */
      uptime_seconds: number;
      /** @description Since the host started. */
      host_uptime_seconds: number;
    };
    /** @description How far the move of one machine is. */
    HostDrainProgress: {
      machine_id: string;
      app_name: string;
      /** @description The machine's name. */
      name: string;
      /** @description The name of a host of the cluster. */
      host: string;
      /** @enum {string} */
      step: "check" | "precopy" | "suspend" | "copy" | "commit" | "done";
      /** @description Bytes. */
      bytes: number;
      /** @description Bytes, of what is read in this step: the memory, and then the files of the machine and of volumes that move with it. An estimate. */
      total_bytes: number;
    };
    HourOfWakes: {
      /** Format: date-time */
      from: string;
      /** @description A kind without wakes is absent. */
      kinds: {
        warm?: components["schemas"]["WakeSummary"];
        resume?: components["schemas"]["WakeSummary"];
        cold?: components["schemas"]["WakeSummary"];
      };
    };
    /** @description An image on the host's disk. */
    Image: {
      /** @description Digest of the image. */
      digest: string;
      /** @description The reference that the image was pulled by. */
      ref: string | null;
      /** @description Bytes. */
      size_bytes: number;
      /** Format: date-time */
      imported_at: string;
      /** @description Whether a machine needs the image. */
      in_use: boolean;
    };
    /** @description An image that is being uploaded. */
    ImageUpload: {
      /** @description The reference for machines and pulls: `upload:NAME@sha256:...`. */
      ref: string;
      /** @description Digest of the image. */
      digest: string;
      /** @description Whether the platform has the image. Then nothing needs to be sent. */
      ready: boolean;
      /** @description Each blob once, the configuration first. Send it first. */
      blobs: components["schemas"]["UploadBlob"][];
    };
    /** @description A token with which one host can join the cluster. */
    JoinToken: {
      token: string;
      /** Format: date-time */
      expires_at: string;
    };
    JoinTokenRequest: {
      /**
       * @description For how many seconds a host can join with it. Default: 3600.
       * @default 3600
       */
      expires_in?: number;
    };
    /** @description One line of a machine's log. */
    LogEntry: {
      /** Format: date-time */
      at: string;
      /** @description The machine's id. */
      machine: string;
      stream: components["schemas"]["LogStream"];
      /** @description The line, without its line break. */
      text: string;
    };
    /** @enum {string} */
    LogStream: "stdout" | "stderr" | "hooks" | "platform";
    /** @description A virtual machine that runs one app. */
    Machine: {
      machine_id: string;
      /** @description The same as `machine_id`. */
      id: string;
      app_name: string;
      name: string;
      state: components["schemas"]["MachineState"];
      /** @description What went wrong (`failed`), or how the app ended (`stopped`). */
      state_reason: string | null;
      /** @description Why requests don't reach the running app: it listens on another port, or on loopback only. Also why a machine's host could not be asked. Null otherwise. */
      unreachable: string | null;
      /** @description Whether the proxy gives the machine no requests, and neither wakes it nor puts it to sleep. */
      cordoned: boolean;
      region: string;
      /** @description The host that owns the machine. Absent outside of a cluster. */
      host?: string;
      /**
       * @description Only in a cluster. `unreachable`: the host is away, or could not be asked. In lists, the machine is shown as far as the other hosts know it then: `state` is what its host last published, `config` and `version` are those of its last update, and everything else is empty.
       * @enum {string}
       */
      host_state?: "up" | "unreachable";
      /** @description A ULID that changes with every update. */
      version: string;
      config: components["schemas"]["MachineConfig"];
      image: {
        /** @description The reference as it was given. */
        ref: string;
        /** @description The digest that the reference resolved to. */
        digest: string;
      };
      /** @description Whether the running machine works. `healthy`: its app listens on the ports of its services, and all its checks pass. `unhealthy`: requests cannot reach it, or a check has failed. `unknown`: it is too early to tell, or the machine isn't running. */
      health: {
        /** @enum {string} */
        status: "healthy" | "unhealthy" | "unknown";
        /** @description What it is judged by, for people. */
        reason: string;
      };
      /** @description What the machine's checks last found. Empty unless the machine is running. */
      checks: components["schemas"]["CheckResult"][];
      /** @description The kernel and agent that the machine boots from. */
      guest_bundle: {
        version: string;
        /** @description Whether it is the bundle that new machines boot from. */
        current: boolean;
        /** @description The machine has a snapshot, and moves to the current bundle at its next cold start. */
        update_pending: boolean;
      };
      /** @description Whether the machine can be suspended. */
      suspend: {
        eligible: boolean;
        /** @description Why it can't be suspended, for people. */
        reasons: string[];
      };
      snapshot: {
        /** Format: date-time */
        created_at: string;
        /** @description Bytes that the snapshot takes on the host's disk. */
        size_bytes: number;
        /** @description Until when the paused virtual machine stays in memory, so that a start takes milliseconds. Null if it does not. */
        warm_until: string | null;
      } | null;
      last_boot: {
        /** @enum {string} */
        kind: "warm" | "resume" | "cold";
        /** @description Why it was a cold start, or `snapshot`. Details follow a colon. */
        reason: string;
        /** Format: date-time */
        at: string;
        /** @description Milliseconds. */
        duration_ms: number;
      } | null;
      /** @description Null if the last update asked for none. */
      prewarm: {
        /** @enum {string} */
        status: "pending" | "done" | "taken" | "failed";
        /** @enum {string} */
        until: "healthy" | "prepared";
        /** @description For people. Null while it is pending. */
        reason: string | null;
        /** Format: date-time */
        since: string;
      } | null;
      keep_awake: {
        /** Format: date-time */
        until: string;
        reason: string;
      } | null;
      /** @description When the schedule starts the machine next. Null without a schedule. */
      next_run: string | null;
      /** @description When the machine wakes if it sleeps by then, as a program in it asked. */
      wake_at: string | null;
      crash: components["schemas"]["Crash"] | null;
      /** @description The machine's IPv4 address in its app's network. */
      private_address: string;
      /** Format: date-time */
      created_at: string;
      /** Format: date-time */
      updated_at: string;
    };
    MachineConfig: {
      /** @description Reference or archive of the image, for example `oci:/srv/app:latest`. */
      image: string;
      guest?: {
        /** @default 1 */
        cpus?: number;
        /** @default 256 */
        memory_mb?: number;
      };
      env?: {
        [key: string]: string;
      };
      init?: {
        entrypoint?: string[];
        cmd?: string[];
        /** @description Replaces both `entrypoint` and `cmd`. */
        exec?: string[];
        /** @description Swap on the machine's writable layer, which grows by as much. Default: 0. */
        swap_size_mb?: number;
      };
      services?: components["schemas"]["ServiceConfig"][];
      /** @description Health checks by name. The machine gets requests only while all of them pass. */
      checks?: {
        [key: string]: components["schemas"]["CheckConfig"];
      };
      restart?: {
        policy?: "no" | "on-failure" | "always";
        /** @description Number of restarts. Default: 10. */
        max_retries?: number;
      };
      stop_config?: {
        /** @description Default: the image's, otherwise SIGTERM. */
        signal?: string;
        /** @description Seconds until SIGKILL. Default: 5. */
        timeout?: number;
      };
      /** @description In a cluster, what happens when the machine's host is lost. `wait`: nothing, until you evacuate the host. `recreate`: another host starts the machine from scratch. A machine with a volume always waits. Default: wait. */
      on_host_loss?: "wait" | "recreate";
      /** @description Whether a stop or a restart keeps what the machine wrote to its file system. An update never does. Default: false. */
      keep_layer?: boolean;
      suspend_config?: {
        /** @description Seconds that the app and the programs in /etc/hibernaut/hooks/pre-suspend.d have to prepare for a suspend. Default: 0, they are not asked. */
        timeout?: number;
      };
      /** @description Volumes. No other machine can use them meanwhile. */
      mounts?: components["schemas"]["MountConfig"][];
      /** @description Files that are written into the machine at every cold start, before its app starts. */
      files?: components["schemas"]["FileConfig"][];
      metadata?: {
        [key: string]: string;
      };
      /** @description When the machine is started: `hourly`, `daily`, `weekly` or `monthly`, counted from its creation, or a cron expression of five fields such as `0 3 * * *`. */
      schedule?: string;
      /** @description Time zone of `schedule`, by its name in the IANA database, such as Europe/Berlin. Default: UTC. */
      schedule_timezone?: string;
    };
    /** @description One entry of a machine's history. */
    MachineEvent: {
      /** Format: date-time */
      at: string;
      /** @description What happened, for example `suspend` or `app_ended`. */
      type: string;
      from: components["schemas"]["MachineState"] | null;
      to: components["schemas"]["MachineState"];
      details: {
        [key: string]: unknown;
      };
    };
    /** @description What is at a path in a machine. */
    MachinePath: {
      /** @enum {string} */
      kind: "file" | "directory" | "link" | "other";
      /** @description What is behind a link, else the same as `kind`. Null for a link that leads nowhere. */
      leads_to: ("file" | "directory" | "link" | "other") | null;
      /** @description Bytes. */
      size_bytes: number;
      /** @description Permissions. */
      mode: number;
      /** @description The path without symbolic links. */
      path: string;
    };
    /** @enum {string} */
    MachineState:
      | "created"
      | "running"
      | "suspended"
      | "stopped"
      | "failed"
      | "restarting"
      | "starting"
      | "suspending"
      | "stopping"
      | "updating"
      | "destroying"
      | "destroyed";
    /** @description What a machine did over time. */
    MachineTimeline: {
      app_name: string;
      machine_id: string;
      name: string;
      state: components["schemas"]["MachineState"];
      /** @description What the machine did, without a gap up to now. `warm` is asleep with its paused virtual machine in memory. Spans too short to be seen are shown together, as what took up most of their time. */
      spans: components["schemas"]["TimelineSpan"][];
      /** @description The newest ones, oldest first. */
      wakes: components["schemas"]["Wake"][];
      /** @description How many older ones there are. */
      wakes_left_out: number;
    };
    MountConfig: {
      /** @description Name or id of the volume. In replies, the id. */
      volume?: string;
      /** @description The same as `volume`, as app files call it. */
      source?: string;
      /** @description In replies, the volume's name. Ignored in requests. */
      name?: string;
      /** @description Directory where the volume is mounted. */
      path: string;
      /** @description GB, for a volume that has yet to be created. Default: 1. */
      size_gb?: number;
      /** @description Days that snapshots of a volume that has yet to be created are kept. Default: 5. */
      snapshot_retention?: number;
      /** @description Whether the platform takes snapshots by itself of a volume that has yet to be created. Default: as its settings say. */
      scheduled_snapshots?: boolean;
    };
    /** @description How far a move is. `done` comes last. */
    MoveProgress: {
      /** @enum {string} */
      step: "check" | "precopy" | "suspend" | "copy" | "commit" | "done";
      /** @description Bytes. */
      bytes: number;
      /** @description Bytes, of what is read in this step: the memory, and then the files of the machine and of volumes that move with it. An estimate. */
      total_bytes: number;
      /** @description The name of a host of the cluster. */
      host: string;
    };
    /** @description A token that was just created. */
    NewToken: {
      id: string;
      name: string;
      /** @description The secret. No other reply contains it. */
      token: string;
      /** @description What it may do. `exec` and `deploy` include `read`; `admin` includes all. */
      scopes: components["schemas"]["Scope"][];
      /** @description The only apps that it reaches; null for all, and the platform itself. */
      apps: string[] | null;
      /** @description When it stops being valid; null for never. */
      expires_at: string | null;
      /** Format: date-time */
      created_at: string;
    };
    /** @description A webhook that was just created, or whose secret was rotated. */
    NewWebhook: {
      id: string;
      /** @description A password in it is not shown. */
      url: string;
      /** @description For people. */
      description: string;
      /** @description Types of events, or groups of types; empty for all. */
      events: string[];
      /** @description The only apps whose events it gets; null for all, and for the platform's. */
      apps: string[] | null;
      /** Format: date-time */
      created_at: string;
      /** @description Null while events are delivered. */
      disabled_at: string | null;
      disabled_reason: string | null;
      /** @description Until when the secret before the last rotation signs, too. */
      former_secret_until: string | null;
      /** @description What signatures are verified with. No other reply contains it. */
      secret: string;
    };
    /** @description An upload that has not ended. */
    OpenUpload: {
      /** @description The reference for machines and pulls: `upload:NAME@sha256:...`. */
      ref: string;
      /** @description Digest of the image. */
      digest: string;
      /** @description Bytes. */
      size_bytes: number;
      /** @description How many bytes the platform has. */
      done_bytes: number;
      /**
       * Format: date-time
       * @description When a client last continued it.
       */
      used_at: string;
    };
    PrunedImages: {
      /** @description Digests of the deleted images. */
      deleted: string[];
      /** @description Bytes that were freed, including those of downloaded layers. */
      freed_bytes: number;
    };
    /** @description How far a pull is. */
    PullProgress:
      | {
          /** @enum {string} */
          step: "resolve" | "copy" | "unpack" | "pack";
        }
      | {
          /** @enum {string} */
          step: "download";
          /** @description Digest of the layer. */
          layer: string;
          /** @description Bytes. */
          done_bytes: number;
          /** @description Bytes. */
          total_bytes: number;
          /** @description Bytes, of all layers of the image. */
          image_done_bytes: number;
          /** @description Bytes, of all layers of the image. */
          image_total_bytes: number;
        };
    /** @description An image that is ready. */
    PulledImage: {
      /** @enum {boolean} */
      done: true;
      ref: string;
      /** @description Digest of the image. */
      digest: string;
      /** @description Bytes. */
      size_bytes: number;
    };
    /** @description What an app may have, and what it has. */
    Quota: {
      limits: {
        /** @description Machines. 0: no limit. */
        machines: number;
        /** @description Machines that run at once. 0: no limit. */
        running: number;
        /** @description CPUs of all machines. 0: no limit. */
        cpus: number;
        /** @description Memory of all machines, in MB. 0: no limit. */
        memory_mb: number;
        /** @description Volumes, in GB. 0: no limit. */
        volume_gb: number;
        /** @description Hostnames. 0: no limit. */
        hostnames: number;
        /** @description Certificates. 0: no limit. */
        certificates: number;
      };
      used: {
        /** @description Machines. */
        machines: number;
        /** @description Machines that run at once. */
        running: number;
        /** @description CPUs of all machines. */
        cpus: number;
        /** @description Memory of all machines, in MB. */
        memory_mb: number;
        /** @description Volumes, in GB. */
        volume_gb: number;
        /** @description Hostnames. */
        hostnames: number;
        /** @description Certificates. */
        certificates: number;
      };
      /** @description The limits that are the app's own, and not the platform's. */
      own: string[];
    };
    /** @description A place where machines run. */
    Region: {
      code: string;
      name: string;
      /** @description The hosts of the cluster, by name, whether they are up or not. */
      hosts?: string[];
    };
    /** @description A login for a registry, without its password. */
    RegistryLogin: {
      host: string;
      username: string;
    };
    /** @description A deploy of an image to an app, and how it ended. */
    Release: {
      /** @description Counted from 1 in each app. */
      version: number;
      /** @enum {string} */
      status: "pending" | "complete" | "failed" | "abandoned";
      image: {
        /** @description The reference as it was given. */
        ref: string;
        /** @description The digest that the reference resolved to. */
        digest: string;
      };
      /** @description The reference with its digest. Machines of this release use it, so that a tag cannot move under them. */
      pinned_image: string;
      description: string;
      /** Format: date-time */
      created_at: string;
    };
    /** @description How the command of a release ended. */
    ReleaseCommandEnd: {
      /** @description Whether the command exited with code 0, in time. */
      ok: boolean;
      /** @description Null when it did not exit by itself. */
      exit_code: number | null;
      /** @description How it ended, for people. */
      reason: string;
    };
    /** @description The configuration of the temporary machine; the command is what its `init` says. The machine gets the image of the release and RELEASE_COMMAND=1, and no services, checks, mounts, schedule or restarts. */
    ReleaseCommandRequest: {
      config: components["schemas"]["MachineConfig"];
      /** @description Seconds from the creation of the machine to the end of the command. Default: 300. */
      timeout?: number;
    };
    /** @enum {string} */
    Scope: "read" | "exec" | "deploy" | "admin";
    /** @description A secret of an app, without its value. */
    Secret: {
      name: string;
      /** @description Equal for equal values. */
      digest: string;
      /** Format: date-time */
      updated_at: string;
    };
    /** @description What a change of secrets means to the app's machines. */
    SecretsEffect: {
      /** @description Ids of the sleeping machines whose snapshots were deleted. Their next start is a cold start. */
      discarded: string[];
      /** @description Ids of the running machines, which see the change after a restart. */
      pending: string[];
    };
    ServiceConfig: {
      /** @description Default: tcp. */
      protocol?: "tcp" | "http";
      /** @description The port that the app listens on. */
      internal_port: number;
      /** @description For `tcp`: ports of the proxy whose connections lead here. Each belongs to one app of the platform, unless all apps that have it handle TLS there. Default: none. */
      ports?: {
        port: number;
        /** @description What the proxy does with a connection. `tls`: ends TLS with the certificate of the hostname. `pg_tls`: the same for PostgreSQL's clients. `tls_passthrough`: leaves TLS to the app. `proxy_proto`: begins with a header of the PROXY protocol, which names the client. With a handler for TLS, the hostname that the client names decides about the app, and apps may share the port. Default: none. */
        handlers?: ("tls" | "pg_tls" | "tls_passthrough" | "proxy_proto")[];
        proxy_proto_options?: {
          /**
           * @description Default: v1.
           * @enum {unknown}
           */
          version?: "v1" | "v2";
        };
      }[];
      /** @description What happens to the machine when it is idle. Default: off. */
      autostop?: "suspend" | "stop" | "off";
      /** @description What happens with `autostop: suspend` to an idle machine that cannot be suspended. `stop`: it is stopped, and what it wrote to its file system is kept. `off`: it keeps running. Default: stop. */
      autostop_fallback?: "stop" | "off";
      /** @description Whether a request starts the machine. Default: true. */
      autostart?: boolean;
      /** @description Keep at least this many of the app's running machines awake. Starts none. Default: 0. */
      min_machines_running?: number;
      /** @description Seconds without a request after which the machine is idle. Default: 300. */
      idle_timeout?: number;
      /** @description What a connection that stays open means, over TCP or upgraded. `open`: it keeps the machine awake. `quiet`: only while something passes through it; on a bridge, the connection survives the sleep, and what the client sends next wakes the machine. Default: open. */
      idle?: "open" | "quiet";
      /** @description Seconds for which the paused virtual machine stays in memory after a suspend, next to the snapshot, so that the next start is faster. 0: not at all. Default: the platform's setting HIBERNAUT_KEEP_WARM. */
      keep_warm?: number;
      /** @description `shared`: the app's machines share its load. `pinned`: each machine has work of its own and sleeps by itself, and requests that name no machine go to the others. Default: shared. */
      placement?: "shared" | "pinned";
      /** @description Whether requests may choose the machine: by its own hostname, `<machine>.<app>.<suffix>` or `<port>--<machine>.<app>.<suffix>`, or by a header. Default: false. */
      machine_hostnames?: boolean;
      /** @description Other apps that may send their requests on to this one. Default: none. */
      replay_from?: string[];
      /** @description Whether a request over plain HTTP is redirected to HTTPS, if the proxy serves it. Default: false. */
      force_https?: boolean;
      /** @description Whether a browser that would wait for a cold start is shown a page in the meantime, which reloads itself. Default: false. */
      wake_page?: boolean;
      http_options?: {
        /** @description Whether the app speaks HTTP/2 without TLS (h2c with prior knowledge), as gRPC servers do, and gets its requests over it. Default: false. */
        h2_backend?: boolean;
        response?: {
          /** @description Headers that replace those of the app in its responses; false removes one. */
          headers?: {
            [key: string]: string | string[] | false;
          };
        };
      };
      concurrency?: {
        type?: "requests" | "connections";
        /** @description Load at which another machine of the app is started. Default: 20. */
        soft_limit?: number;
        /** @description Load at which the machine gets no more requests. Default: none. */
        hard_limit?: number;
      };
    };
    /** @description Whose rights a browser, or a request, has. */
    Session: {
      token: {
        id: string;
        name: string;
      };
      /** @description What the token may do. */
      scopes: components["schemas"]["Scope"][];
      /** @description The only apps that it reaches; null for all, and the platform itself. */
      apps: string[] | null;
      /** @description When the session ends unless it is used before. Of a request with a token: when the token expires, or null for never. */
      expires_at: string | null;
    };
    StartRequest: {
      /** @description Why, for the machine's history; for example `exec`. */
      reason?: string;
    };
    StartSessionRequest: {
      /** @description The secret of an API token. */
      token: string;
    };
    /** @description Something that changed on the platform. */
    StreamEvent: {
      /** @description Counts up; numbers may be missing. In a cluster, each host has its own. */
      sequence: number;
      /** Format: date-time */
      at: string;
      /** @description What it happened to, and what happened. */
      type: string;
      /** @description Null for what belongs to no app. */
      app_name: string | null;
      machine_id: string | null;
      /** @description What else is known, by type. */
      data: {
        [key: string]: unknown;
      };
      /** @description Only in a cluster: the host on which it happened. */
      host?: string;
      /** @description Only in a cluster: with this as `since`, any host continues after the event. */
      position?: string;
    };
    /** @description What machines did over time, those that are not destroyed. */
    Timeline: {
      /** Format: date-time */
      from: string;
      /** Format: date-time */
      until: string;
      machines: components["schemas"]["MachineTimeline"][];
    };
    /** @description A stretch of time that a machine spent in one state. */
    TimelineSpan: {
      /** @enum {string} */
      state: "running" | "warm" | "suspended" | "stopped" | "failed";
      /** Format: date-time */
      from: string;
      /** Format: date-time */
      until: string;
    };
    /** @description An API token, without its secret. */
    Token: {
      id: string;
      name: string;
      /** @description What it may do. `exec` and `deploy` include `read`; `admin` includes all. */
      scopes: components["schemas"]["Scope"][];
      /** @description The only apps that it reaches; null for all, and the platform itself. */
      apps: string[] | null;
      /** @description When it stops being valid; null for never. */
      expires_at: string | null;
      /** Format: date-time */
      created_at: string;
      revoked_at: string | null;
      /** @description Known to the minute. Null if it was not used yet. */
      last_used_at: string | null;
      /** @description The id of the token that a rotation made in its place. */
      replaced_by: string | null;
    };
    /** @description What was copied into a machine. */
    UnpackedArchive: {
      /** @description Files, directories and links of the archive. */
      entries: number;
      /** @description Bytes of all files. */
      bytes: number;
    };
    UpdateAppRequest: {
      /** @description Whether anyone may see at `/status/<app>` how the app is. */
      status_page?: boolean;
    };
    /** @description The complete new configuration. Without `config`, the machine moves to the current guest bundle and keeps its image and configuration: at its next cold start, if it has a snapshot. Nothing changes if it has that bundle. */
    UpdateMachineRequest: {
      config?: components["schemas"]["MachineConfig"];
      /** @description Start a sleeping machine with the new configuration, and let it sleep again once it is `healthy`, so that the next wake finds a snapshot. `prepared`: not before a program in it has also said that it is. Has no effect on a running machine. Default: false. */
      prewarm?: boolean | "prepared";
    };
    /** @description Changes of an app's limits. */
    UpdateQuotaRequest: {
      /** @description Machines. 0: no limit. Null: that of the platform. */
      machines?: number | null;
      /** @description Machines that run at once. 0: no limit. Null: that of the platform. */
      running?: number | null;
      /** @description CPUs of all machines. 0: no limit. Null: that of the platform. */
      cpus?: number | null;
      /** @description Memory of all machines, in MB. 0: no limit. Null: that of the platform. */
      memory_mb?: number | null;
      /** @description Volumes, in GB. 0: no limit. Null: that of the platform. */
      volume_gb?: number | null;
      /** @description Hostnames. 0: no limit. Null: that of the platform. */
      hostnames?: number | null;
      /** @description Certificates. 0: no limit. Null: that of the platform. */
      certificates?: number | null;
    };
    UpdateReleaseRequest: {
      /** @enum {string} */
      status: "pending" | "complete" | "failed";
      description?: string;
    };
    UpdateVolumeRequest: {
      /** @description Days that the volume's snapshots are kept. */
      snapshot_retention?: number;
      /** @description Take snapshots by itself. */
      auto_backup_enabled?: boolean;
    };
    UpdateWebhookRequest: {
      /** @description Where events are sent, over https. */
      url?: string;
      /** @description In place of those that it has; empty for all. */
      events?: string[];
      /** @description In place of those that it has; null for all. */
      apps?: string[] | null;
      /** @description For people. */
      description?: string;
      /** @description Whether events are delivered. Enabled again, it gets what happened meanwhile. */
      enabled?: boolean;
      /** @description With `enabled: true`: drop what waits, and what happened meanwhile. Default: false. */
      skip?: boolean;
    };
    /** @description The configuration of an image, or one of its layers. */
    UploadBlob: {
      /** @description Digest of the blob. */
      digest: string;
      /** @description Bytes. */
      size_bytes: number;
      /** @description How many bytes the platform has. Equal to `size_bytes` if the blob is complete and was checked. */
      offset: number;
    };
    /** @description What was used, by one app, machine or day, or in all. */
    Usage: {
      /** @description Null for a row about all apps. */
      app_name: string | null;
      /** @description Only with `group_by=machine`. Null for the volumes of an app that no machine has. */
      machine_id: string | null;
      /** @description Like `machine_id`. */
      machine_name: string | null;
      /** @description Only with `group_by=day`. In UTC. */
      day: string | null;
      /** @description How long machines ran. */
      running_seconds: number;
      /** @description How long machines were suspended. */
      suspended_seconds: number;
      /** @description How long machines were stopped, or in another state without a guest. */
      stopped_seconds: number;
      /** @description The time of running machines, multiplied by their CPUs. */
      cpu_seconds: number;
      /** @description The time of running machines, multiplied by their memory in GB of 1024 MB. */
      memory_gb_seconds: number;
      /** @description Disk space of writable layers in GB, multiplied by time. */
      layer_gb_seconds: number;
      /** @description Size of volumes in GB, multiplied by time. */
      volume_gb_seconds: number;
      /** @description Disk space of machines' snapshots in GB, multiplied by time. Not billed. */
      snapshot_gb_seconds: number;
      /** @description Starts that a request at the proxy asked for, by kind. */
      wakes: {
        resume: number;
        cold: number;
      };
      /** @description As seen by the app. */
      proxied_bytes: {
        /** @description Bytes. */
        in: number;
        /** @description Bytes. */
        out: number;
      };
      /** @description Null without a price file. */
      cost: components["schemas"]["Cost"] | null;
    };
    /** @description Usage of whole days, of which today is counted up to now. */
    UsageReport: {
      /** Format: date-time */
      from: string;
      /** Format: date-time */
      to: string;
      /** @enum {string} */
      group_by: "app" | "machine" | "day";
      /** @description ISO 4217; null without a price file. */
      currency: string | null;
      usage: components["schemas"]["Usage"][];
      total: components["schemas"]["Usage"];
    };
    /** @description A disk that outlives machines. */
    Volume: {
      id: string;
      /** @description Several volumes of an app may have the same name. */
      name: string;
      /** @enum {string} */
      state: "creating" | "created" | "destroying";
      /** @description Size in GB. */
      size_gb: number;
      /** @description Bytes that the volume takes on the host's disk. Grows as data is written. */
      used_bytes: number;
      region: string;
      /** @description In a cluster, the host that has the volume. */
      host?: string;
      /** @description In a cluster, the host that has a newer copy of this volume, after a restore of etcd. No machine gets the copy here: destroy it at its host. */
      newer_on?: string;
      /**
       * @description Volumes are not encrypted. Encrypt the host's disk instead.
       * @enum {boolean}
       */
      encrypted: false;
      /** @description Id of the one machine that uses the volume. */
      attached_machine_id: string | null;
      /** @description Days that the volume's snapshots are kept. */
      snapshot_retention: number;
      /** @description Whether the platform takes snapshots by itself. */
      auto_backup_enabled: boolean;
      /** @description When the platform last took one. Null before the first. */
      last_scheduled_snapshot_at: string | null;
      /** @description Why the one that is due could not be taken yet. Null when none is due. */
      scheduled_snapshot_error: string | null;
      /** Format: date-time */
      created_at: string;
    };
    /** @description A volume as it was at one moment. */
    VolumeSnapshot: {
      id: string;
      /** @enum {string} */
      status: "creating" | "created" | "destroying";
      /** @description Bytes that the snapshot takes on the host's disk, without those that it shares with the volume. */
      size: number;
      /** @description GB. A volume created from the snapshot has at least this size. */
      volume_size: number;
      /** @description Days that the snapshot is kept. */
      retention_days: number;
      /** Format: date-time */
      created_at: string;
    };
    /** @description A start that was completed. */
    Wake: {
      /** Format: date-time */
      at: string;
      /** @enum {string} */
      kind: "warm" | "resume" | "cold";
      /** @description Why it was this kind: a stable word and, after a colon, details. */
      reason: string;
      duration_ms: number;
    };
    /** @description How often machines woke, and how long that took. */
    WakeSummary: {
      count: number;
      p50_ms: number;
      p99_ms: number;
    };
    /** @description How machines woke, hour by hour. */
    Wakes: {
      /** Format: date-time */
      from: string;
      /** Format: date-time */
      until: string;
      hours: components["schemas"]["HourOfWakes"][];
    };
    /** @description A URL that is told of events, without its secret. */
    Webhook: {
      id: string;
      /** @description A password in it is not shown. */
      url: string;
      /** @description For people. */
      description: string;
      /** @description Types of events, or groups of types; empty for all. */
      events: string[];
      /** @description The only apps whose events it gets; null for all, and for the platform's. */
      apps: string[] | null;
      /** Format: date-time */
      created_at: string;
      /** @description Null while events are delivered. */
      disabled_at: string | null;
      disabled_reason: string | null;
      /** @description Until when the secret before the last rotation signs, too. */
      former_secret_until: string | null;
    };
    /** @description An event on its way to a webhook, or that arrived lately. */
    WebhookDelivery: {
      /** @description The event's number; of a `gap`, the last number that is gone. */
      sequence: number;
      /** @description `webhook-id`, the same for every attempt. */
      message_id: string;
      type: string;
      app_name: string | null;
      machine_id: string | null;
      state: components["schemas"]["DeliveryState"];
      /** @description How many were made; since it was enabled, if it has not arrived. */
      attempts: number;
      last_attempt_at: string | null;
      /** @description Null unless it waits for another attempt. */
      next_attempt_at: string | null;
      /** @description HTTP status of the last attempt; null without an answer. */
      status: number | null;
      /** @description Why the last attempt failed; null if it did not. */
      error: string | null;
      /** @description How long the last attempt took. */
      duration_ms: number | null;
    };
    /** @enum {string} */
    WebhookOutcome: "delivered" | "refused" | "gone" | "timeout" | "unreachable" | "blocked" | "unsigned";
    /** @description How one attempt to send a test message ended. */
    WebhookTest: {
      /** @description `webhook-id` of the request. */
      message_id: string;
      outcome: components["schemas"]["WebhookOutcome"];
      /** @description HTTP status; null without an answer. */
      status: number | null;
      /** @description Why it failed; null if it was delivered. */
      error: string | null;
      duration_ms: number;
    };
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
