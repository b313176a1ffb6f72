// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"fmt"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/internal/portfile"
)

// notice tells others that the collector is ready. What goes wrong with it is logged and ends nothing.
type notice struct {
	readyFile string
	systemd   bool
}

// ready writes the ready file, with the process's id, and tells systemd. It never says STOPPING=1: the extension ends with
// every reload, and systemd would take that for the end of the service.
func (n *notice) ready(logger *zap.Logger) {
	if n.readyFile != "" {
		if err := portfile.Write(n.readyFile, fmt.Sprintln(os.Getpid())); err != nil {
			logger.Error("The ready file cannot be written", zap.String("ready_file", n.readyFile), zap.Error(err))
		}
	}
	if n.systemd {
		if _, err := daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS=Ready for telemetry"); err != nil {
			logger.Error("systemd cannot be told that the collector is ready", zap.Error(err))
		}
	}
}

// remove removes the ready file, where there is one.
func (n *notice) remove(logger *zap.Logger) {
	if err := removeStale(n.readyFile); err != nil {
		logger.Error("The ready file cannot be removed", zap.String("ready_file", n.readyFile), zap.Error(err))
	}
}
