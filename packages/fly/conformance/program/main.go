// Calls the port of Hibernaut that speaks Fly Machines' API, by Fly's own Go client, and prints each call as a line of JSON.
// Ends with code 0 if all of them did what the client's users rely on.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// How long a whole run may take. On two emulated cores, the calls take minutes and fifty machines half an hour.
const runTimeout = 2 * time.Hour

// The modes: what the first argument may be.
var modes = map[string]func(*rig){
	"calls": calls,
	"fifty": fifty,
}

func main() {
	if len(os.Args) != 2 || modes[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: program calls|fifty (settings are in the environment, see settings.go)")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	r, err := openRig(ctx, readSettings())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	modes[os.Args[1]](r)
	if r.report.summary() > 0 {
		os.Exit(1)
	}
}

// calls tries each call of the client once or more. Later groups use what earlier ones made.
func calls(r *rig) {
	for _, group := range []func(*rig){
		apps, secrets, volumes, launch, lists, updates, leases, inside, variants, power, endings, mounted, unknownKeys, strangers, gone, manners,
	} {
		if r.ctx.Err() != nil {
			return
		}
		group(r)
	}
}
