package main

import (
	"os"
	"strconv"
)

// What the environment says. The names of the first three are those that Fly's own programs read.
type settings struct {
	// FLY_FLAPS_BASE_URL: the port under test. The client reads it itself, too.
	machines string
	// FLY_API_BASE_URL: where GraphQL is asked; the same port by default.
	graph string
	// FLY_API_TOKEN: may make and delete apps.
	token string
	// HIBERNAUT_IMAGE: has a shell, cat and the small app of the tests as its command, which listens on 8080.
	image string
	// HIBERNAUT_PROXY_URL: where apps are reached, by hostnames that end in .localhost.
	proxy string
	// HIBERNAUT_MACHINES, HIBERNAUT_AWAKE: how many machines the mode fifty makes, and lets be awake at a time.
	machineCount, awake int
	// HIBERNAUT_ROUNDS: how often each of them is put to sleep and woken.
	rounds int
	// HIBERNAUT_MEMORY_MB: of each of them.
	memoryMB int
}

func readSettings() settings {
	return settings{
		machines:     os.Getenv("FLY_FLAPS_BASE_URL"),
		graph:        text("FLY_API_BASE_URL", os.Getenv("FLY_FLAPS_BASE_URL")),
		token:        os.Getenv("FLY_API_TOKEN"),
		image:        os.Getenv("HIBERNAUT_IMAGE"),
		proxy:        os.Getenv("HIBERNAUT_PROXY_URL"),
		machineCount: number("HIBERNAUT_MACHINES", 50),
		awake:        number("HIBERNAUT_AWAKE", 4),
		rounds:       number("HIBERNAUT_ROUNDS", 3),
		memoryMB:     number("HIBERNAUT_MEMORY_MB", 128),
	}
}

func text(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func number(name string, otherwise int) int {
	value, err := strconv.Atoi(os.Getenv(name))
	if err != nil || value < 1 {
		return otherwise
	}
	return value
}
