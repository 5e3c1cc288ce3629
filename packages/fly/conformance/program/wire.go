package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Stands between the client and the network: remembers the last exchange, and what no answer may be.
type wire struct {
	under    http.RoundTripper
	mutex    sync.Mutex
	sent     []byte
	received []byte
	answers  int
	faults   []string
}

// RoundTrip passes a request on.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.Body != nil {
		var err error
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		_ = request.Body.Close()
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := w.under.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	received, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(received))
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.sent, w.received = sent, received
	w.answers++
	if fault := faultOf(response, received); fault != "" {
		w.faults = append(w.faults, fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, fault))
	}
	return response, nil
}

// faultOf says what is wrong with an answer whatever was asked.
func faultOf(response *http.Response, body []byte) string {
	var refusal struct {
		Error  string `json:"error"`
		Status string `json:"status"`
	}
	switch status := response.StatusCode; {
	case response.Header.Get("fly-request-id") == "":
		return "no fly-request-id"
	case status >= 500:
		return fmt.Sprintf("status %d: %s", status, body)
	case status >= 400 && (json.Unmarshal(body, &refusal) != nil || refusal.Error == ""):
		return fmt.Sprintf("status %d without a text in error: %s", status, body)
	}
	return ""
}

// lastConfigs returns the configuration of a machine that was sent last, and the one that was answered.
func (w *wire) lastConfigs() (sent, received any, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var pair [2]struct {
		Config any `json:"config"`
	}
	for at, body := range [2][]byte{w.sent, w.received} {
		if err := json.Unmarshal(body, &pair[at]); err != nil {
			return nil, nil, err
		}
	}
	return pair[0].Config, pair[1].Config, nil
}
