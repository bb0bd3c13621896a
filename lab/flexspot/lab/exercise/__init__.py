"""The course's exercise (Module 1.6, hands-on), corrected and played on the lab: reclaim of a guaranteed share between two teams."""
