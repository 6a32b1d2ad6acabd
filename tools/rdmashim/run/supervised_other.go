//go:build !linux || !(amd64 || arm64)

package run

import "errors"

func supervisable() error {
	return errors.New("the supervisor needs Linux on amd64 or arm64")
}

func supervised([]string, []string, string) error { return supervisable() }
