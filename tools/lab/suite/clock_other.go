//go:build !linux

package suite

import "time"

func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
