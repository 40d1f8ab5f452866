import "./styles/app.css";
