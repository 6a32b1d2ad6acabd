//go:build !linux || !(amd64 || arm64)

package notif

import "errors"

// Check says that this system has none.
func Check() (Support, error) {
	return Support{}, errors.New("the supervisor needs Linux on amd64 or arm64")
}
