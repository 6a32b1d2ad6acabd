//go:build !linux || !(amd64 || arm64)

package doctor

import (
	"errors"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

func supervisor() (notif.Support, error) {
	return notif.Support{}, errors.New("the supervisor needs Linux on amd64 or arm64")
}
