package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// Longer details are cut, in bytes.
const detailLimit = 600

// One line of output.
type line struct {
	Name   string `json:"name"`
	Ok     bool   `json:"ok"`
	Ms     int64  `json:"ms"`
	Detail string `json:"detail"`
}

// Prints calls as they are done. Several goroutines may use it.
type report struct {
	mutex          sync.Mutex
	out            *json.Encoder
	passed, failed int
}

func newReport() *report {
	return &report{out: json.NewEncoder(os.Stdout)}
}

// call does one call and prints it. A fault of this program while it reads an answer is a failed call, too.
func (r *report) call(name string, do func() (string, error)) (ok bool) {
	began := time.Now()
	detail, err := guarded(do)
	if err != nil {
		detail = err.Error()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err == nil {
		r.passed++
	} else {
		r.failed++
	}
	_ = r.out.Encode(line{Name: name, Ok: err == nil, Ms: time.Since(began).Milliseconds(), Detail: shortened(detail)})
	return err == nil
}

func guarded(do func() (string, error)) (detail string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the answer lacks what was read: %v", fault)
		}
	}()
	return do()
}

func shortened(detail string) string {
	if len(detail) <= detailLimit {
		return detail
	}
	return detail[:detailLimit] + "..."
}

// summary says how many calls there were, and returns how many failed.
func (r *report) summary() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	fmt.Fprintf(os.Stderr, "%d passed, %d failed\n", r.passed, r.failed)
	return r.failed
}
