"""What both trees are asked, as data: nothing here knows any version of the code."""
