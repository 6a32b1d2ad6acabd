//go:build !linux || !(amd64 || arm64)

package kernel

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
)

var errNoServer = errors.New("kernels that serve programs need Linux on amd64 or arm64")

func serveCommand() *cobra.Command {
	return &cobra.Command{Use: "serve", Hidden: true, RunE: func(*cobra.Command, []string) error { return errNoServer }}
}

func attach(string, lines, io.Writer) error { return errNoServer }

func (c *console) ps(*args) error { return errNoServer }
