package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// lost names what is in sent and not, or not the same, in received; both are JSON as Go reads it. More may be in received. What
// was sent as null may be left out.
func lost(sent, received any, path string) []string {
	if sent == nil {
		return nil
	}
	switch value := sent.(type) {
	case map[string]any:
		other, isObject := received.(map[string]any)
		if !isObject {
			return []string{fmt.Sprintf("%s: %v became %v", path, sent, received)}
		}
		var all []string
		for key, inner := range value {
			all = append(all, lost(inner, other[key], path+"."+key)...)
		}
		return all
	case []any:
		other, isArray := received.([]any)
		if !isArray || len(other) != len(value) {
			return []string{fmt.Sprintf("%s: %v became %v", path, sent, received)}
		}
		var all []string
		for at, inner := range value {
			all = append(all, lost(inner, other[at], fmt.Sprintf("%s[%d]", path, at))...)
		}
		return all
	}
	if !reflect.DeepEqual(sent, received) {
		return []string{fmt.Sprintf("%s: %v became %v", path, sent, received)}
	}
	return nil
}

// keptAll is an error that names what was lost.
func keptAll(sent, received any) error {
	if all := lost(sent, received, "config"); len(all) > 0 {
		return errors.New("not returned as sent: " + strings.Join(all, "; "))
	}
	return nil
}
