//go:build !unix

package vm

import (
	"errors"
	"fmt"
	"net"
	"os"
)

var errNoSockets = fmt.Errorf("guests cannot be run on this system, only on Unix ones: %w", errors.ErrUnsupported)

func socketPair() (net.Conn, *os.File, error) { return nil, nil, errNoSockets }

func filePair() (*os.File, *os.File, error) { return nil, nil, errNoSockets }
