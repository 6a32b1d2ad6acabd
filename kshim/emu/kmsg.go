package emu

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// maxKmsg is how many lines the kernel log keeps, the latest.
const maxKmsg = 512

// kmsg is the kernel log, a slog.Handler that keeps lines for /dev/kmsg.
type kmsg struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

// Enabled implements slog.Handler.
func (k *kmsg) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (k *kmsg) Handle(_ context.Context, r slog.Record) error { return k.print(nil, r) }

// WithAttrs and WithGroup implement slog.Handler. Groups are not shown.
func (k *kmsg) WithAttrs(attrs []slog.Attr) slog.Handler { return &kmsgAttrs{k, attrs} }
func (k *kmsg) WithGroup(string) slog.Handler            { return k }

// kmsgAttrs is kmsg with attributes for every line.
type kmsgAttrs struct {
	*kmsg
	attrs []slog.Attr
}

func (k *kmsgAttrs) Handle(_ context.Context, r slog.Record) error { return k.print(k.attrs, r) }
func (k *kmsgAttrs) WithGroup(string) slog.Handler                 { return k }
func (k *kmsgAttrs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &kmsgAttrs{k.kmsg, slices.Concat(k.attrs, attrs)}
}

// print adds a line: the message, then attributes as name=value.
func (k *kmsg) print(attrs []slog.Attr, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		b.WriteString(" " + a.String())
		return true
	}
	for _, a := range attrs {
		add(a)
	}
	r.Attrs(add)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.lines) == maxKmsg {
		k.lines = slices.Delete(k.lines, 0, 1)
	}
	k.lines = append(k.lines, strings.ReplaceAll(b.String(), "\n", " ")+"\n")
	return nil
}

func (k *kmsg) text() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.lines, ""), nil
}
