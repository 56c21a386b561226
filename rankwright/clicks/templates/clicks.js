startTheme();
startTips();
