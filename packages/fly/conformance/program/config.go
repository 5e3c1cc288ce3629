package main

import (
	fly "github.com/superfly/fly-go"
)

// The port that the app in the image listens on.
const appPort = 8080

// fullConfig has a bit of all that Fly's users write into the configuration of a machine.
func (r *rig) fullConfig() *fly.MachineConfig {
	suspend := fly.MachineAutostopSuspend
	yes, none, soon := true, 0, fly.MustParseDuration("10s")
	http, https, check, path, method := 80, 443, "http", "/health", "GET"
	port := appPort
	interval, timeout, grace := fly.MustParseDuration("5s"), fly.MustParseDuration("2s"), fly.MustParseDuration("1s")
	signal := "SIGTERM"
	return &fly.MachineConfig{
		Image:    r.settings.image,
		Env:      map[string]string{"GREETING": "hello", "EMPTY": ""},
		Guest:    &fly.MachineGuest{CPUKind: "shared", CPUs: 1, MemoryMB: 256},
		Metadata: map[string]string{"user": "7", "fly_process_group": "app"},
		Restart:  &fly.MachineRestart{Policy: fly.MachineRestartPolicyNo},
		Services: []fly.MachineService{{
			Protocol:           "tcp",
			InternalPort:       appPort,
			Autostop:           &suspend,
			Autostart:          &yes,
			MinMachinesRunning: &none,
			Concurrency:        &fly.MachineServiceConcurrency{Type: "requests", HardLimit: 50, SoftLimit: 20},
			Ports: []fly.MachinePort{
				{Port: &https, Handlers: []string{"tls", "http"}},
				{Port: &http, Handlers: []string{"http"}},
			},
		}},
		Checks: map[string]fly.MachineCheck{"alive": {
			Port: &port, Type: &check, HTTPPath: &path, HTTPMethod: &method,
			Interval: interval, Timeout: timeout, GracePeriod: grace,
			HTTPHeaders: []fly.MachineHTTPHeader{{Name: "X-Check", Values: []string{"yes"}}},
		}},
		StopConfig: &fly.StopConfig{Signal: &signal, Timeout: soon},
		Metrics:    &fly.MachineMetrics{Port: 9091, Path: "/metrics"},
		DNS:        &fly.DNSConfig{SkipRegistration: true},
	}
}

// plainConfig is a machine with that environment that nothing is asked of.
func (r *rig) plainConfig(env map[string]string) *fly.MachineConfig {
	return &fly.MachineConfig{
		Image: r.settings.image,
		Env:   env,
		Guest: &fly.MachineGuest{CPUKind: "shared", CPUs: 1, MemoryMB: 256},
	}
}
