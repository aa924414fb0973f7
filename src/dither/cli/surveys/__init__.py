"""Commands of local privacy: choosing a channel, running a survey, counting reports."""
