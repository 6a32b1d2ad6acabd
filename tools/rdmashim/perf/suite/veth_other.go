//go:build !linux

package suite

import (
	"context"
	"errors"
)

func setUpVeth(context.Context) (gid int, err error) {
	return 0, errors.New("--guest is for guests, which run Linux")
}
