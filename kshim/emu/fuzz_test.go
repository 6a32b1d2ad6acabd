package emu

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPath opens and lists anything.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "", "/sys/class", "/sys/class/infiniband/fake0/ports/1/gids/0", "/dev/infiniband/uverbs0", "/../sys//class/."} {
		f.Add(s)
	}
	c := newClient(f, true)
	f.Fuzz(func(t *testing.T, name string) {
		_, _ = c.proc.ReadDir(name)
		file, err := c.proc.Open(name)
		if err == nil {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = file.Read(ctx, make([]byte, 64))
			require.NoError(t, file.Close())
		}
	})
}
