package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	fly "github.com/superfly/fly-go"
)

// What checks have to pass, in time. They are asked every 5 seconds.
const (
	checksTimeout = time.Minute
	checksPause   = time.Second
)

// launch makes the machine that most calls are about, and looks at it from all sides.
func launch(r *rig) {
	if !r.call("create machine", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Launch(ctx, r.app, fly.LaunchMachineInput{Name: "one", Config: r.fullConfig()})
		if err != nil {
			return "", err
		}
		r.machine = machine
		return machine.ID, errors.Join(r.kept(), equal("name", machine.Name, "one"),
			equal("version is there", machine.InstanceID != "", true), equal("version", machine.Version, machine.InstanceID))
	}) {
		return
	}
	r.waits("wait until started", "started")
	r.call("get machine", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		_, madeErr := time.Parse(time.RFC3339, machine.CreatedAt)
		_, changedErr := time.Parse(time.RFC3339, machine.UpdatedAt)
		started, eventsErr := machine.MostRecentStartTimeAfterLaunch()
		return fmt.Sprintf("%s, started at %s, image %+v", machine.PrivateIP, started, machine.ImageRef), errors.Join(
			madeErr, changedErr, eventsErr, equal("state", machine.State, "started"), equal("region is there", machine.Region != "", true),
			equal("host", machine.HostStatus, fly.HostStatusOk), equal("active", machine.IsActive(), true),
			equal("process group", machine.ProcessGroup(), "app"), equal("recent", time.Since(started) < time.Hour, true),
			equal("digest is there", strings.HasPrefix(machine.ImageRef.Digest, "sha256:"), true))
	})
	r.call("checks pass", func(ctx context.Context) (string, error) { return r.checksPass(ctx, r.machine.ID, "alive") })
	r.call("events", func(ctx context.Context) (string, error) {
		var events []struct {
			ID, Type, Status, Source string
			Timestamp                int64
		}
		_, err := r.rest(ctx, http.MethodGet, r.path("/events"), nil, &events)
		if err != nil || len(events) == 0 {
			return "", errors.Join(err, equal("number of events", len(events), 2))
		}
		return fmt.Sprintf("%+v", events), errors.Join(equal("ID is there", events[0].ID != "", true),
			equal("newest first", events[0].Timestamp >= events[len(events)-1].Timestamp, true))
	})
	r.call("request through the proxy, with environment and secret", func(ctx context.Context) (string, error) {
		env, err := r.environment(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		return "", errors.Join(equal("variable", env["GREETING"], "hello"), equal("secret", env["PASSWORD"], "open sesame"))
	})
}

// kept compares the configuration in the last answer with what was sent.
func (r *rig) kept() error {
	sent, received, err := r.wire.lastConfigs()
	if err != nil {
		return err
	}
	return keptAll(sent, received)
}

// path of the machine that most calls are about.
func (r *rig) path(more string) string {
	return fmt.Sprintf("/apps/%s/machines/%s%s", r.app, r.machine.ID, more)
}

// checksPass waits until all checks of a machine do. The first one has a name that begins like that.
func (r *rig) checksPass(ctx context.Context, id, name string) (string, error) {
	for began := time.Now(); ; time.Sleep(checksPause) {
		machine, err := r.flaps.Get(ctx, r.app, id)
		if err != nil {
			return "", err
		}
		all := machine.AllHealthChecks()
		if all.Total > 0 && all.AllPassing() {
			return fmt.Sprintf("%+v", *machine.Checks[0]), equal("name", strings.HasPrefix(machine.Checks[0].Name, name), true)
		}
		if time.Since(began) > checksTimeout {
			return "", fmt.Errorf("of %d checks, %d pass", all.Total, all.Passing)
		}
	}
}

// visit asks one machine of an app through the proxy, which wakes it if it sleeps, and returns the answer.
func (r *rig) visit(ctx context.Context, app, id, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.settings.proxy+path, nil)
	if err != nil {
		return nil, err
	}
	request.Host = app + ".localhost"
	request.Header.Set("Fly-Force-Instance-Id", id)
	response, err := r.proxy.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s of %s: status %d: %s", path, id, response.StatusCode, body)
	}
	return body, err
}

// environment of the program in a machine, as it tells itself.
func (r *rig) environment(ctx context.Context, app, id string) (env map[string]string, err error) {
	body, err := r.visit(ctx, app, id, "/env")
	if err != nil {
		return nil, err
	}
	return env, json.Unmarshal(body, &env)
}

// birth of the program in a machine: the same as long as it runs, and asleep and awake again, and another after each start.
func (r *rig) birth(ctx context.Context, app, id string) (string, error) {
	body, err := r.visit(ctx, app, id, "/")
	if err != nil {
		return "", err
	}
	var said struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Nonce == "" {
		return "", errors.Join(err, fmt.Errorf("no nonce in %s", body))
	}
	return said.Nonce, nil
}
