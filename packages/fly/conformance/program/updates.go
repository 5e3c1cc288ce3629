package main

import (
	"context"
	"errors"
	"net/http"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
)

// updates changes one thing in what was read, and writes it back, as all of Fly's programs do.
func updates(r *rig) {
	if r.machine == nil {
		return
	}
	var updated *fly.Machine
	r.call("update machine: read, modify, write", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		machine.Config.Env["GREETING"] = "hello again"
		input := fly.LaunchMachineInput{ID: machine.ID, Name: machine.Name, Region: machine.Region, Config: machine.Config}
		if updated, err = r.flaps.Update(ctx, r.app, input, ""); err != nil {
			return "", err
		}
		return updated.InstanceID, errors.Join(r.kept(), equal("ID", updated.ID, machine.ID),
			equal("version is another", updated.InstanceID != machine.InstanceID, true))
	})
	if updated == nil {
		return
	}
	r.call("wait for the new version", func(ctx context.Context) (string, error) {
		return "", r.wait(ctx, r.app, updated.ID, flaps.WithWaitVersion(updated.InstanceID))
	})
	r.call("get machine after the update", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		r.machine = machine
		return machine.State, errors.Join(equal("version", machine.InstanceID, updated.InstanceID),
			equal("variable", machine.Config.Env["GREETING"], "hello again"), equal("autostop", *machine.Config.Services[0].Autostop, fly.MachineAutostopSuspend),
			equal("interval", machine.Config.Checks["alive"].Interval.String(), "5s"))
	})
	r.call("the app has the new environment", func(ctx context.Context) (string, error) {
		env, err := r.environment(ctx, r.app, r.machine.ID)
		return "", errors.Join(err, equal("variable", env["GREETING"], "hello again"))
	})
	r.call("versions, the newest first", func(ctx context.Context) (string, error) {
		var versions []struct {
			Version string            `json:"version"`
			Config  fly.MachineConfig `json:"user_config"`
		}
		_, err := r.rest(ctx, http.MethodGet, r.path("/versions"), nil, &versions)
		if err != nil || len(versions) == 0 {
			return "", errors.Join(err, equal("number of versions", len(versions), 2))
		}
		return versions[0].Version, equal("newest", versions[0].Version, updated.InstanceID)
	})
	r.refused("update with a configuration that is wrong", http.StatusBadRequest, "", func(ctx context.Context) error {
		config := r.fullConfig()
		config.Guest.MemoryMB = -5
		_, err := r.flaps.Update(ctx, r.app, fly.LaunchMachineInput{ID: r.machine.ID, Config: config}, "")
		return err
	})
}
