// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// watchTop shows pictures on the terminal until somebody ends it.
func watchTop(ctx context.Context, client *healthClient, run string, interval time.Duration) error {
	screen := &topScreen{run: run, every: interval, take: func() (*picture, error) { return takePicture(ctx, client) }}
	_, err := tea.NewProgram(screen, tea.WithContext(ctx)).Run()
	switch {
	case screen.fatal != nil:
		return usage(fmt.Errorf("top: %w", screen.fatal))
	case errors.Is(err, tea.ErrInterrupted), ctx.Err() != nil:
		return nil
	}
	return err
}

// topScreen is the model of the program: the last picture, the run that is shown, and why there is no newer picture.
type topScreen struct {
	take  func() (*picture, error)
	every time.Duration

	last          *picture
	err           error
	fatal         error  // what waiting does not mend
	run           string // "": the one that was seen last
	width, height int
}

// What has come.
type (
	pictureTaken struct {
		picture *picture
		err     error
	}
	timeToTake struct{}
)

func (s *topScreen) Init() tea.Cmd { return s.ask }

func (s *topScreen) ask() tea.Msg {
	p, err := s.take()
	return pictureTaken{p, err}
}

func (s *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case timeToTake:
		return s, s.ask
	case pictureTaken:
		s.err = msg.err
		if errors.Is(msg.err, errRefused) {
			s.fatal = msg.err
			return s, tea.Quit
		}
		if msg.err == nil {
			s.last = msg.picture
		}
		return s, tea.Tick(s.every, func(time.Time) tea.Msg { return timeToTake{} })
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return s, tea.Quit
		case "up", "k":
			s.turn(-1)
		case "down", "j":
			s.turn(1)
		}
	}
	return s, nil
}

// turn goes to the run before or after the one that is shown.
func (s *topScreen) turn(by int) {
	if s.last == nil || len(s.last.Runs.Runs) == 0 {
		return
	}
	at := min(max(0, s.last.find(s.run)+by), len(s.last.Runs.Runs)-1)
	s.run = s.last.Runs.Runs[at].ID
}

var (
	topTitle = lipgloss.NewStyle().Bold(true)
	topFaint = lipgloss.NewStyle().Faint(true)
	topBad   = lipgloss.NewStyle().Foreground(lipgloss.Red)
)

// View shows as much as fits.
func (s *topScreen) View() tea.View {
	var lines []string
	switch {
	case s.last == nil && s.err == nil:
		lines = []string{"Asking ..."}
	case s.last == nil:
	default:
		lines = s.lines()
	}
	if s.err != nil {
		lines = append([]string{topBad.Render("No answer, trying on: " + printable(s.err.Error())), ""}, lines...)
	}
	help := topFaint.Render("up, down: run   q: quit")
	if s.height > 1 && len(lines) > s.height-1 {
		lines = lines[:s.height-1]
	}
	for i, line := range lines {
		if s.width > 0 {
			lines[i] = lipgloss.NewStyle().MaxWidth(s.width).Render(line)
		}
	}
	view := tea.NewView(strings.Join(append(lines, help), "\n"))
	view.AltScreen = true
	view.WindowTitle = "lenscol top"
	return view
}

func (s *topScreen) lines() []string {
	at := s.last.find(s.run)
	var lines []string
	for worst := mostWorst; worst > 0; worst-- { // So that the exporters are seen too.
		lines = strings.Split(strings.TrimRight(s.last.text(at, worst), "\n"), "\n")
		if len(lines) < s.height {
			break
		}
	}
	if at < 0 && s.run != "" {
		lines[2] = fmt.Sprintf("There is no run %q.", s.run)
	}
	for i, line := range lines {
		switch first, _, _ := strings.Cut(line, " "); {
		case i == 0, i == 2, first != "" && first == strings.ToUpper(first) && strings.ToLower(first) != first:
			lines[i] = topTitle.Render(line)
		case strings.Contains(line, " unhealthy "):
			lines[i] = topBad.Render(line)
		}
	}
	return lines
}
