package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
)

// mounted is about a machine with a volume, which is made with a lease, and destroyed at once.
func mounted(r *rig) {
	if r.volume == nil {
		return
	}
	var machine *fly.Machine
	if !r.call("create machine with a volume and a lease", func(ctx context.Context) (string, error) {
		config := r.plainConfig(nil)
		config.Mounts = []fly.MachineMount{{Volume: r.volume.ID, Path: "/data"}}
		input := fly.LaunchMachineInput{Name: "two", Config: config, LeaseTTL: leaseSeconds}
		var err error
		if machine, err = r.flaps.Launch(ctx, r.app, input); err != nil {
			return "", err
		}
		return machine.ID, errors.Join(r.kept(), equal("nonce is there", machine.LeaseNonce != "", true),
			r.wait(ctx, r.app, machine.ID, flaps.WithWaitStates("started")))
	}) {
		return
	}
	r.call("the volume is attached", func(ctx context.Context) (string, error) {
		volume, err := r.flaps.GetVolume(ctx, r.app, r.volume.ID)
		if err != nil {
			return "", err
		}
		return "", equal("machine", *volume.AttachedMachine, machine.ID)
	})
	r.call("the volume is mounted", func(ctx context.Context) (string, error) {
		said, err := r.flaps.Exec(ctx, r.app, machine.ID, &fly.MachineExecRequest{Cmd: "cat /proc/mounts", Timeout: 30})
		if err != nil {
			return "", err
		}
		return "", equal("it is among the mounts", strings.Contains(said.StdOut, " /data ext4 "), true)
	})
	r.refused("delete volume in use", 4, "", func(ctx context.Context) error {
		_, err := r.flaps.DeleteVolume(ctx, r.app, r.volume.ID)
		return err
	})
	r.refused("destroy without the nonce that it was made with", http.StatusConflict, heldBy, func(ctx context.Context) error {
		return r.flaps.Destroy(ctx, r.app, fly.RemoveMachineInput{ID: machine.ID, Kill: true}, "")
	})
	r.call("destroy with that nonce", func(ctx context.Context) (string, error) {
		return "", r.flaps.Destroy(ctx, r.app, fly.RemoveMachineInput{ID: machine.ID, Kill: true}, machine.LeaseNonce)
	})
	r.call("wait until destroyed", func(ctx context.Context) (string, error) {
		return "", r.isDestroyed(ctx, machine.ID)
	})
	r.call("delete volume", func(ctx context.Context) (string, error) {
		volume, err := r.flaps.DeleteVolume(ctx, r.app, r.volume.ID)
		if err != nil {
			return "", err
		}
		left, err := r.flaps.GetVolumes(ctx, r.app)
		return volume.State, errors.Join(err, equal("volumes left", len(left), 0))
	})
}

// isDestroyed waits for it. As for flyctl, a machine that is not found is as good.
func (r *rig) isDestroyed(ctx context.Context, id string) error {
	err := r.wait(ctx, r.app, id, flaps.WithWaitStates("destroyed"))
	if errors.Is(err, flaps.ErrFlapsNotFound) {
		return nil
	}
	return err
}
