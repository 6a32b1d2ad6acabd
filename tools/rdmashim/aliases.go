package main

import "github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"

// The names of package cli for the commands that still lie here. Each goes with
// the last of them.

type (
	usageError  = cli.UsageError
	exitStatus  = cli.ExitStatus
	deviceFlags = cli.DeviceFlags
	progress    = cli.Progress
	palette     = cli.Palette
	child       = cli.Child
)

const (
	version         = cli.Version
	listeningPrefix = cli.ListeningPrefix
)

var (
	usagef        = cli.Usagef
	noArgs        = cli.NoArgs
	maxArgs       = cli.MaxArgs
	oneLine       = cli.OneLine
	size          = cli.Size
	dash          = cli.Dash
	open          = cli.Open
	paletteFor    = cli.PaletteFor
	newProgress   = cli.NewTransfer
	newSteps      = cli.NewSteps
	newShare      = cli.NewShare
	startServer   = cli.StartServer
	startProcess  = cli.StartProcess
	saidError     = cli.SaidError
	errServerSaid = cli.ErrServerSaid
	withOptions   = cli.WithOptions
	softAt        = cli.SoftAt

	firstArgument = cli.CompleteFirst
)
