package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
)

// endings let the program in the machine end in all ways, and start again.
func endings(r *rig) {
	if r.machine == nil {
		return
	}
	r.call("stop with signal and timeout", func(ctx context.Context) (string, error) {
		timeout := fly.Duration{Duration: 20 * time.Second}
		return "", r.flaps.Stop(ctx, r.app, fly.StopMachineInput{ID: r.machine.ID, Signal: "SIGTERM", Timeout: timeout}, "")
	})
	r.waits("wait until stopped", "stopped")
	r.call("the event of its exit", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		exit := machine.GetLatestEventOfType("exit")
		if exit == nil {
			return "", errors.New("there is none")
		}
		code, err := exit.Request.GetExitCode()
		return fmt.Sprintf("%+v", *exit.Request.ExitEvent), errors.Join(err, equal("exit code", code, 0),
			equal("requested", exit.Request.ExitEvent.RequestedStop, true), equal("time is there", exit.Request.ExitEvent.ExitedAt.IsZero(), false))
	})
	r.refused("wait for what does not happen", http.StatusRequestTimeout, "", func(ctx context.Context) error {
		return r.flaps.Wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("started"), flaps.WithWaitTimeout(time.Second))
	})
	r.refused("wait for a state that is none", http.StatusBadRequest, "", func(ctx context.Context) error {
		return r.flaps.Wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("flying"), flaps.WithWaitTimeout(time.Second))
	})
	r.call("wait until settled", func(ctx context.Context) (string, error) {
		return "", r.flaps.Wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("settled"), flaps.WithWaitTimeout(5*time.Second))
	})
	r.call("start: boot", func(ctx context.Context) (string, error) {
		started, err := r.flaps.Start(ctx, r.app, r.machine.ID, "")
		if err != nil {
			return "", err
		}
		return "", errors.Join(equal("previous state", started.PreviousState, "stopped"),
			r.wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("started")))
	})
	r.call("restart", func(ctx context.Context) (string, error) {
		born, err := r.birth(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		input := fly.RestartMachineInput{ID: r.machine.ID, Timeout: 20 * time.Second, Signal: "SIGTERM"}
		if err := r.flaps.Restart(ctx, r.app, input, ""); err != nil {
			return "", err
		}
		if err := r.wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("started")); err != nil {
			return "", err
		}
		now, err := r.birth(ctx, r.app, r.machine.ID)
		return now, errors.Join(err, equal("it is another program", now != born, true))
	})
	r.call("kill: signal 9", func(ctx context.Context) (string, error) {
		if err := r.flaps.Kill(ctx, r.app, r.machine.ID); err != nil {
			return "", err
		}
		return "", r.wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("stopped"))
	})
	r.call("the event of that exit", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		exit := machine.GetLatestEventOfType("exit").Request.ExitEvent
		var history []string
		for _, event := range machine.Events {
			history = append(history, event.Type+" "+event.Status)
		}
		detail := fmt.Sprintf("%+v in %s", *exit, strings.Join(history, ", "))
		if exit.RequestedStop {
			return "", errors.New("it was not requested: " + detail)
		}
		return detail, nil
	})
}
