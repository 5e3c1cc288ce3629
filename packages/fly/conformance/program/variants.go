package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
)

// What the app of the second machine answers, so that nobody takes it for the first one.
const otherText = "the other one"

// variants is about a second machine in the app, which is written in other ways than the first.
func variants(r *rig) {
	if r.machine == nil {
		return
	}
	var other *fly.Machine
	if !r.call("create machine without a start", func(ctx context.Context) (string, error) {
		var err error
		if other, err = r.flaps.Launch(ctx, r.app, fly.LaunchMachineInput{Name: "three", SkipLaunch: true, Config: r.otherConfig()}); err != nil {
			return "", err
		}
		kept := r.kept()
		machine, err := r.flaps.Get(ctx, r.app, other.ID)
		if err != nil {
			return "", err
		}
		return "", errors.Join(kept, equal("state", machine.State, "created"))
	}) {
		return
	}
	r.call("its first start", func(ctx context.Context) (string, error) {
		started, err := r.flaps.Start(ctx, r.app, other.ID, "")
		if err != nil {
			return "", err
		}
		return "", errors.Join(equal("previous state", started.PreviousState, "created"),
			r.wait(ctx, r.app, other.ID, flaps.WithWaitStates("started")))
	})
	r.call("files: of the configuration, and of a secret", func(ctx context.Context) (string, error) {
		said, err := r.flaps.Exec(ctx, r.app, other.ID, &fly.MachineExecRequest{Cmd: "cat /etc/plain /etc/password", Timeout: 30})
		if err != nil {
			return "", err
		}
		return said.StdErr, equal("contents", said.StdOut, "plain text\nof a secret\n")
	})
	r.call("a request for one of two machines reaches that one", func(ctx context.Context) (string, error) {
		var all []error
		for range 4 {
			own, err := r.visit(ctx, r.app, r.machine.ID, "/")
			another, otherErr := r.visit(ctx, r.app, other.ID, "/")
			all = append(all, err, otherErr, equal("first", strings.Contains(string(own), "nonce"), true), equal("second", string(another), otherText))
		}
		return "", errors.Join(all...)
	})
	r.call("the check of its service passes", func(ctx context.Context) (string, error) {
		return r.checksPass(ctx, other.ID, "servicecheck-")
	})
	r.call("destroy it", func(ctx context.Context) (string, error) {
		err := r.flaps.Destroy(ctx, r.app, fly.RemoveMachineInput{ID: other.ID, Kill: true}, "")
		return "", errors.Join(err, r.isDestroyed(ctx, other.ID))
	})
	r.call("a machine that is to be destroyed when its program ends", func(ctx context.Context) (string, error) {
		config := r.plainConfig(nil)
		config.AutoDestroy = true
		config.Restart = &fly.MachineRestart{Policy: fly.MachineRestartPolicyNo}
		config.Init.Cmd = []string{"--fail", "0"}
		machine, err := r.flaps.Launch(ctx, r.app, fly.LaunchMachineInput{Config: config})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s was named %s", machine.ID, machine.Name), r.isDestroyed(ctx, machine.ID)
	})
}

func (r *rig) otherConfig() *fly.MachineConfig {
	config := r.plainConfig(nil)
	// In the way of old clients, by the name of a size.
	config.Guest, config.VMSize = nil, "shared-cpu-1x"
	config.Init.Cmd = []string{"--text", otherText}
	plain, secret := base64.StdEncoding.EncodeToString([]byte("plain text\n")), "FILE"
	config.Files = []*fly.File{{GuestPath: "/etc/plain", RawValue: &plain}, {GuestPath: "/etc/password", SecretName: &secret}}
	port, kind := 80, "tcp"
	config.Services = []fly.MachineService{{
		Protocol: "tcp", InternalPort: appPort,
		Ports: []fly.MachinePort{{Port: &port, Handlers: []string{"http"}}},
		Checks: []fly.MachineServiceCheck{{
			Type: &kind, Interval: fly.MustParseDuration("2s"), Timeout: fly.MustParseDuration("1s"),
		}},
	}}
	return config
}
