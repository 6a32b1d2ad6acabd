//go:build !linux

package suite

import "time"

type alarm struct{}

func newAlarm() (*alarm, error) { return new(alarm), nil }

func (*alarm) sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }

func (*alarm) close() {}
