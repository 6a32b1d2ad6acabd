package cli

import (
	"io"
	"log/slog"

	"github.com/rdmashim/rdmashim/uapi"
)

// Open opens a device, and tells automatic choices on stderr.
func Open(name string, stderr io.Writer, config uapi.OpenConfig) (*uapi.Context, error) {
	config.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	return uapi.OpenWith(name, config)
}
