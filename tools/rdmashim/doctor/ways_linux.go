//go:build amd64 || arm64

package doctor

import "github.com/rdmashim/rdmashim/kshim/supervise/notif"

func supervisor() (notif.Support, error) { return notif.Check() }
