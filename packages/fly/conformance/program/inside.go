package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	fly "github.com/superfly/fly-go"
)

// inside looks into the running machine, and at what is written on its label.
func inside(r *rig) {
	if r.machine == nil {
		return
	}
	for _, each := range []struct {
		name           string
		request        fly.MachineExecRequest
		code           int32
		stdout, stderr string
	}{
		{"exec", fly.MachineExecRequest{Cmd: "echo one 'two three'", Timeout: 30}, 0, "one two three\n", ""},
		{"exec with another exit code", fly.MachineExecRequest{Cmd: `sh -c "echo bad >&2; exit 3"`, Timeout: 30}, 3, "", "bad\n"},
		{"exec with standard input", fly.MachineExecRequest{Cmd: "cat", Stdin: "from outside", Timeout: 30}, 0, "from outside", ""},
	} {
		r.call(each.name, func(ctx context.Context) (string, error) {
			said, err := r.flaps.Exec(ctx, r.app, r.machine.ID, &each.request)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%+v", *said), errors.Join(equal("exit code", said.ExitCode, each.code),
				equal("output", said.StdOut, each.stdout), equal("errors", said.StdErr, each.stderr))
		})
	}
	r.call("processes", func(ctx context.Context) (string, error) {
		all, err := r.flaps.GetProcesses(ctx, r.app, r.machine.ID)
		for _, process := range all {
			if strings.Contains(process.Command, "small") {
				return fmt.Sprintf("%+v", process), errors.Join(err, equal("it has an ID", process.Pid > 0, true))
			}
		}
		return "", errors.Join(err, fmt.Errorf("the app is not among %d processes", len(all)))
	})
	metadata(r)
	r.call("cordon", func(ctx context.Context) (string, error) {
		err := r.flaps.Cordon(ctx, r.app, r.machine.ID, "")
		machine, otherErr := r.flaps.Get(ctx, r.app, r.machine.ID)
		return "", errors.Join(err, otherErr, equal("cordoned", machine.Cordoned, true))
	})
	r.call("uncordon", func(ctx context.Context) (string, error) {
		err := r.flaps.Uncordon(ctx, r.app, r.machine.ID, "")
		machine, otherErr := r.flaps.Get(ctx, r.app, r.machine.ID)
		return "", errors.Join(err, otherErr, equal("cordoned", machine.Cordoned, false))
	})
}

// metadata is written and read key by key, without a new version.
func metadata(r *rig) {
	r.call("set metadata", func(ctx context.Context) (string, error) {
		return "", r.flaps.SetMetadata(ctx, r.app, r.machine.ID, "color", "blue")
	})
	r.call("get metadata", func(ctx context.Context) (string, error) {
		all, err := r.flaps.GetMetadata(ctx, r.app, r.machine.ID)
		return fmt.Sprint(all), errors.Join(err, equal("new", all["color"], "blue"), equal("old", all["user"], "7"))
	})
	r.call("list by metadata that was set", func(ctx context.Context) (string, error) {
		machines, err := r.flaps.List(ctx, r.app, "metadata.color=blue")
		return r.only(machines, 1, err)
	})
	r.call("delete metadata", func(ctx context.Context) (string, error) {
		err := r.flaps.DeleteMetadata(ctx, r.app, r.machine.ID, "color")
		all, otherErr := r.flaps.GetMetadata(ctx, r.app, r.machine.ID)
		_, isThere := all["color"]
		return fmt.Sprint(all), errors.Join(err, otherErr, equal("it is there", isThere, false))
	})
	r.call("metadata makes no version", func(ctx context.Context) (string, error) {
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		return "", errors.Join(equal("version", machine.InstanceID, r.machine.InstanceID), equal("metadata", machine.Config.Metadata["user"], "7"))
	})
}
