package loopback

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// downError is an error with its cause.
type downError struct {
	error
	cause string
}

func (e *downError) Error() string { return e.error.Error() + "; " + e.cause }

func (e *downError) Unwrap() error { return e.error }

// Explain adds to ENETUNREACH, EADDRNOTAVAIL, ENODEV and timeouts that the
// loopback interface is down, if it is and the error does not say so, and
// returns every other error as it is.
func Explain(err error) error {
	var late net.Error // of an interface that has its address and is down
	silent := errors.As(err, &late) && late.Timeout()
	if !silent && !errors.Is(err, syscall.ENETUNREACH) && !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.ENODEV) {
		return err
	}
	if cause := Down(); cause != "" && !strings.Contains(err.Error(), cause) {
		return &downError{err, cause}
	}
	return err
}

// Down says that the loopback interface is down, and what to do; "" if it is
// up.
func Down() string {
	list, _ := net.Interfaces()
	for _, i := range list {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp == 0 {
			return fmt.Sprintf("the interface %s is down, which 127.0.0.1 needs: ip link set %[1]s up", i.Name)
		}
	}
	return ""
}
