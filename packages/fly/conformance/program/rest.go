package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// rest makes a request of the documented API for which the client has no call of its own: the client makes the request, and what
// is answered is read into out unless that is nil. Path begins after /v1.
func (r *rig) rest(ctx context.Context, method, path string, in, out any) (int, error) {
	request, err := r.flaps.NewRequest(ctx, method, path, in, nil)
	if err != nil {
		return 0, err
	}
	response, err := r.wire.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return response.StatusCode, fmt.Errorf("%s %s: status %d: %s", method, path, response.StatusCode, body)
	}
	if out == nil {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.Unmarshal(body, out)
}
