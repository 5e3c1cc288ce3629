package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
)

// gone removes everything, and looks whether it is.
func gone(r *rig) {
	if r.machine != nil {
		destroy(r)
	}
	r.call("delete app, with a machine that is in it", func(ctx context.Context) (string, error) {
		if _, err := r.flaps.Launch(ctx, r.app, fly.LaunchMachineInput{SkipLaunch: true, Config: r.plainConfig(nil)}); err != nil {
			return "", err
		}
		return "", r.flaps.DeleteApp(ctx, r.app)
	})
	r.refused("get app that is deleted", http.StatusNotFound, "", func(ctx context.Context) error {
		_, err := r.flaps.GetApp(ctx, r.app)
		return err
	})
}

func destroy(r *rig) {
	r.call("start before it is destroyed", func(ctx context.Context) (string, error) {
		if _, err := r.flaps.Start(ctx, r.app, r.machine.ID, ""); err != nil {
			return "", err
		}
		return "", r.wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("started"))
	})
	r.refused("destroy what runs", 4, "", func(ctx context.Context) error {
		return r.flaps.Destroy(ctx, r.app, fly.RemoveMachineInput{ID: r.machine.ID}, "")
	})
	r.call("destroy by force", func(ctx context.Context) (string, error) {
		err := r.flaps.Destroy(ctx, r.app, fly.RemoveMachineInput{ID: r.machine.ID, Kill: true}, "")
		return "", errors.Join(err, r.isDestroyed(ctx, r.machine.ID))
	})
	r.call("get machine that is destroyed", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		if err == nil {
			return machine.State, equal("active", machine.IsActive(), false)
		}
		return isRefusal(err, http.StatusNotFound, "machine not found")
	})
	r.call("list active machines: none", func(ctx context.Context) (string, error) {
		machines, err := r.flaps.ListActive(ctx, r.app)
		return "", errors.Join(err, equal("number of machines", len(machines), 0))
	})
}

// manners are what each answer must have, whatever was asked.
func manners(r *rig) {
	r.call("every answer has an ID, and every refusal a sentence", func(context.Context) (string, error) {
		if len(r.wire.faults) > 0 {
			return "", errors.New(strings.Join(r.wire.faults, "; "))
		}
		return fmt.Sprintf("%d answers", r.wire.answers), equal("there were some", r.wire.answers > 0, true)
	})
}
