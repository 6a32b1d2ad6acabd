//go:build !linux

package vm

import (
	"os/exec"
	"time"
)

// dieWithParent can do nothing here. The guest powers itself off when its port
// is closed, which it is when we end.
func dieWithParent(*exec.Cmd) {}

// threadWaits is unknown here.
func threadWaits(int) map[string]time.Duration { return nil }
